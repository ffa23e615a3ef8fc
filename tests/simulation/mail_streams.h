// Messages that the trainers of a job exchange in a random run beside their collectives, some of
// them withdrawn, and the judgement of them:
//
// - what a receive has got is the next message of its stream, those of one sender, receiver and
//   tag: each message is received once, in the order of the sends, and none is left out;
// - what was withdrawn has given and taken nothing;
// - each ends once, and all that were withdrawn do in bounded time.
//
// Where the job has failed, a message that has failed at its receiver may have been the next one.
//
// Ownership: refers to the trainers, which must outlive it. Single-threaded.
#ifndef GRADCUBE_TESTS_SIMULATION_MAIL_STREAMS_H_
#define GRADCUBE_TESTS_SIMULATION_MAIL_STREAMS_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/fabric/emulated/random.h"
#include "tests/simulation/simulated_trainer.h"

namespace gradcube::simulation {

class MailStreams {
 public:
  // Names of messages; those of collectives are below.
  static constexpr std::uint64_t kNames = std::uint64_t{1} << 63;
  static constexpr unsigned kSlots = 6;  // messages of a trainer in flight
  static constexpr std::uint64_t kMostBytes = 4096;
  static constexpr std::uint64_t kRoom = kSlots * kMostBytes;  // in a trainer's memory

  // room: the offset of kRoom bytes, a multiple of shared::kBufferAlignment.
  MailStreams(std::uint64_t seed, std::uint64_t room) : random_(seed), room_(room) {}

  // By rank.
  void add(unsigned rank, SimulatedTrainer& trainer) { traders_[rank].trainer = &trainer; }

  // The trainer may submit or withdraw something at this time. When it wants to be asked next;
  // dataplane::kNever: not again.
  std::int64_t act(unsigned rank, std::int64_t now);
  void take(unsigned rank, const shared::Completion& completion);
  // It takes part no more.
  void lose(unsigned rank) { traders_[rank].gone = true; }
  // Withdraws all that has not ended, once.
  void finish(unsigned rank);
  bool has_ended() const;

  // What is wrong, at the end. may_fail: the job has failed, or a part of it.
  std::vector<std::string> judge(bool may_fail) const;

 private:
  static constexpr unsigned kActions = 16;  // of a trainer
  struct Stream {
    unsigned from = 0;
    unsigned to = 0;
    std::uint64_t tag = 0;
    auto operator<=>(const Stream&) const = default;
  };
  struct Message {
    Stream stream;
    bool sends = false;
    bool withdrawn = false;              // it was asked for
    std::optional<std::int32_t> code{};  // once it has ended
    // Of a send: which of its stream's; of a receive that has ended well: the one that it has got.
    std::uint64_t number = 0;
    unsigned slot = 0;
  };
  struct Trader {
    SimulatedTrainer* trainer = nullptr;
    bool gone = false;
    std::int64_t acts_at = 0;
    unsigned actions = 0;
    std::map<std::uint64_t, std::size_t> in_flight{};  // places in messages_, by name
    std::array<bool, kSlots> used{};
  };

  void submit(unsigned rank, Trader& trader);
  void withdraw(Trader& trader, std::uint64_t name);
  std::uint64_t offset_of(unsigned slot) const { return room_ + slot * kMostBytes; }
  std::string read(SimulatedTrainer& trainer, Message& message, std::uint64_t bytes) const;
  void judge(const Stream& stream, const std::vector<const Message*>& sends,
             const std::vector<const Message*>& receives,
             std::vector<std::string>& complaints) const;

  dataplane::SeededRandom random_;
  std::uint64_t room_;
  std::uint64_t names_ = kNames;
  std::map<unsigned, Trader> traders_;
  std::vector<Message> messages_;  // in the order of their submissions
  std::map<Stream, std::uint64_t> sent_;
  std::vector<std::string> complaints_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_MAIL_STREAMS_H_
