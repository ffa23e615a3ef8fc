// What the benches of the relay share: a relay with two ports, frames for it, and a generator that
// sends them and takes what comes back.
#ifndef GRADCUBE_TESTS_BENCH_DATAPLANE_RELAY_BENCH_H_
#define GRADCUBE_TESTS_BENCH_DATAPLANE_RELAY_BENCH_H_

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/engine/engine.h"
#include "dataplane/host/poller.h"
#include "protocol/link_frame.h"

namespace gradcube::dataplane::bench {

inline constexpr std::uint16_t kBurst = 32;      // testpmd's
inline constexpr std::uint16_t kDepth = 1024;    // of every ring between generator and relay
inline constexpr std::uint32_t kLongest = 1514;  // frame

template <typename Number>
Number number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error(std::string(text) + " is no number");
  }
  return value;
}

inline void pin(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    throw std::runtime_error("a thread cannot stay on core " + std::to_string(core));
  }
}

// Whole, of so many bytes without FCS: from [0,1] through the relay [0,0], which it enters by port
// 0 and leaves by port 1, to [1,0]. A segment; where that is too long, a path failure, the shortest
// frame that is relayed.
inline std::vector<std::uint8_t> relayed_frame(std::uint32_t bytes) {
  protocol::RoutingHeader routing;
  routing.source = 1;
  routing.destination = 2;
  routing.hop_count = 2;
  routing.hops[0] = {0, 0};
  routing.hops[1] = {1, 1};
  const protocol::LinkAddresses link{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 1, 2};
  std::vector<std::uint8_t> frame(std::max<std::size_t>(bytes, protocol::kMaxHeaderBytes));
  const std::size_t headers =
      protocol::header_bytes(protocol::FrameType::segment, routing.hop_count);
  if (bytes > headers) {
    protocol::SegmentHeader segment;
    segment.length = static_cast<std::uint16_t>(bytes - headers);
    protocol::encode_frame(frame, link, routing, {}, &segment);
  } else {
    protocol::write_link_frame(frame, protocol::FrameType::path_failure, link, routing,
                               protocol::kFirstSourcePort, {});
  }
  frame.resize(bytes);
  return frame;
}

class NoEvents final : public EventSink {
 public:
  bool report(const EngineEvent&) override { return true; }
};

// Server [0,0] of bcube:2,2 without a job: one iteration of its poller does all that a daemon's
// does.
class RelayUnderTest {
 public:
  RelayUnderTest(Port& first, Port& second, Clock& clock)
      : engine_(settings(), bcube::AddressSpace(std::array{2U, 2U}),
                {{&first, &credit_[0]}, {&second, &credit_[1]}}, {segments_, answers_}, events_),
        poller_(clock, control::Idle::spin) {
    poller_.add(engine_, Poller::TimeBase::clock);
  }
  void iterate() { poller_.iterate(); }
  std::uint64_t relayed() const { return engine_.counters().relayed; }

 private:
  static EngineSettings settings() {
    EngineSettings settings;
    settings.threads = {0};
    settings.segment_bytes = 1024;
    return settings;
  }

  NoEvents events_;
  std::array<protocol::PortCredit, 2> credit_{protocol::PortCredit({}), protocol::PortCredit({})};
  PacketPool segments_{{.name = "segments", .count = 1023}};
  PacketPool answers_{{.name = "answers", .count = 1023}};
  Engine engine_;
  Poller poller_;
};

struct Measured {
  double frames_per_second = 0;
  // Of the frames that were offered, the share that the ring to the relay had no room for. Where it
  // is small, it is the generator that was measured.
  double refused = 0;
};

// Offers frames as fast as it can for some time, and counts those that come back, after a warm-up.
// send and receive: a burst, as rte_eth_tx_burst() and rte_eth_rx_burst() have it.
template <typename Send, typename Receive>
Measured generate(const std::vector<std::uint8_t>& frame, double seconds, PacketPool& pool,
                  const Send& send, const Receive& receive) {
  using SteadyClock = std::chrono::steady_clock;
  const std::size_t head = std::min<std::size_t>(frame.size(), protocol::kMaxHeaderBytes);
  rte_mbuf* burst[kBurst];
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;
  std::uint64_t received = 0;
  const auto begin = SteadyClock::now();
  auto counted_from = begin + std::chrono::duration_cast<SteadyClock::duration>(
                                  std::chrono::duration<double>(seconds / 4));
  const auto end = counted_from + std::chrono::duration_cast<SteadyClock::duration>(
                                      std::chrono::duration<double>(seconds));
  bool counting = false;
  auto now = begin;
  for (; now < end; now = SteadyClock::now()) {
    if (!counting && now >= counted_from) {
      counting = true;
      counted_from = now;
      offered = accepted = received = 0;
    }
    if (pool.allocate(burst, kBurst)) {
      for (rte_mbuf* packet : burst) {
        // What the relay may have changed; what lies behind is of no interest to anybody.
        std::memcpy(rte_pktmbuf_mtod(packet, void*), frame.data(), head);
        packet->data_len = static_cast<std::uint16_t>(frame.size());
        packet->pkt_len = static_cast<std::uint32_t>(frame.size());
      }
      const std::uint16_t sent = send(burst, kBurst);
      if (sent < kBurst) rte_pktmbuf_free_bulk(burst + sent, kBurst - sent);
      offered += kBurst;
      accepted += sent;
    }
    const std::uint16_t count = receive(burst, kBurst);
    for (std::uint16_t i = 0; i < count; ++i) received += burst[i]->pkt_len == frame.size() ? 1 : 0;
    rte_pktmbuf_free_bulk(burst, count);
  }
  const double took = std::chrono::duration<double>(now - counted_from).count();
  return {static_cast<double>(received) / took,
          offered == 0 ? 1 : 1 - static_cast<double>(accepted) / static_cast<double>(offered)};
}

}  // namespace gradcube::dataplane::bench

#endif  // GRADCUBE_TESTS_BENCH_DATAPLANE_RELAY_BENCH_H_
