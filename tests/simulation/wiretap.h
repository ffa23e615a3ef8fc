// Somebody on the wires of a simulated cluster who does not have its key. He reads each frame that
// the switches bring to a server, and for a while keeps some from arriving, delays some, and sends
// at any port what he has heard: as it was, soon or much later, with bits changed, with the payload
// of another frame, or cut; and bytes of his own.
//
// A Wiretap is one for a cluster; a TappedPort is what an engine has in place of a port. What is
// delayed or sent again is a copy: the frame points into the memory of a trainer, which may leave.
//
// Single-threaded. Time and randomness are handed in. The clock and the ports outlive it.
#ifndef GRADCUBE_TESTS_SIMULATION_WIRETAP_H_
#define GRADCUBE_TESTS_SIMULATION_WIRETAP_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dataplane/fabric/emulated/random.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "tests/simulation/passing_port.h"

namespace gradcube::simulation {

// When he is at work, in virtual time, and how much he does; from == until: never.
struct Attack {
  std::int64_t from = 0;
  std::int64_t until = 0;
  double cuts = 0;    // probabilities, per frame
  double delays = 0;  // by up to kLongestDelay
  double sends = 0;   // per frame that he has heard

  bool any() const { return from < until; }
};

// From the seed, by itself: what else is drawn from it stays as it is. None for half of all seeds.
Attack drawn_attack(std::uint64_t seed);

class Wiretap {
 public:
  static constexpr std::int64_t kLongestDelay = 50'000'000;

  Wiretap(const Attack& attack, std::uint64_t seed, std::uint32_t mtu, dataplane::Clock& clock);

  // A port has received `received` packets, and has room for `room`. How many there are then.
  std::uint16_t touch(rte_mbuf** packets, std::uint16_t received, std::uint16_t room);
  // By what he has done: "again", "changed", "spliced", "cut short", "made up", "kept", "delayed".
  const std::map<std::string, std::uint64_t>& done() const { return done_; }

 private:
  using Bytes = std::vector<std::uint8_t>;
  static constexpr std::size_t kMostKept = 2'000;
  // A frame that is sent again may be answered, and the answer heard.
  static constexpr unsigned kMostSent = 100'000;

  struct Delayed {
    std::int64_t until;
    Bytes bytes;
  };

  bool keeps_back(const rte_mbuf* packet);
  void note(const rte_mbuf* packet);
  Bytes next_frame();
  Bytes forged(const Bytes& frame);
  bool put(const Bytes& bytes, rte_mbuf** packets, std::uint16_t& count);

  Attack attack_;
  dataplane::SeededRandom random_;
  dataplane::Clock& clock_;
  dataplane::PacketPool pool_;
  std::vector<Bytes> heard_;
  std::vector<Delayed> delayed_;
  std::map<std::string, std::uint64_t> done_;
  unsigned left_ = kMostSent;  // frames of his own that he may still send
  unsigned owed_ = 0;          // of these, those for which there was no room yet
};

class TappedPort final : public PassingPort {
 public:
  TappedPort(dataplane::Port& port, Wiretap& wiretap) : PassingPort(port), wiretap_(wiretap) {}

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override {
    const std::uint16_t received =
        wiretap_.touch(packets, receive_there(queue, packets, count), count);
    count_received(queue % queues(), received, total_bytes(packets, received));
    return received;
  }

 private:
  Wiretap& wiretap_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_WIRETAP_H_
