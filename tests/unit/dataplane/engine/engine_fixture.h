// What the tests of single functions of the engine and its executor work on: a server's session
// with a trainer that is a mapping, packets, and a port whose wire is two lists. No thread, no
// clock.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_ENGINE_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_ENGINE_FIXTURE_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "control/plan/algorithms.h"
#include "dataplane/engine/engine.h"
#include "dataplane/engine/session/session.h"
#include "dataplane/fabric/port.h"
#include "dataplane/host/packet_pool.h"
#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

inline control::Plan bml_plan(const std::string& topology) {
  return control::make_plan("bml", control::parse_topology(topology, "test"), "test");
}

// A job of so many lanes of equal priority, which all run BML.
inline LanePlans bml_lanes(const std::string& topology, unsigned lanes = 1) {
  return LanePlans(lanes, {std::make_shared<control::Plan>(bml_plan(topology)), 0});
}

inline PacketPool make_pool(const std::string& name, std::uint32_t count,
                            std::uint32_t frame_bytes = kHeaderBytes) {
  PacketPoolOptions options;
  options.name = name;
  options.count = count;
  options.frame_bytes = frame_bytes;
  options.cache = 0;
  return PacketPool(options);
}

// A session and its trainer, whose only buffer begins at the heap. All elements are float32.
class TestSession {
 public:
  explicit TestSession(unsigned threads, std::uint64_t heap_bytes = 1 << 16, unsigned lanes = 1,
                       unsigned ranks = 2) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    trainer_end_ = ends[1];
    session_ = std::make_unique<Session>(whole_region(heap_bytes), ends[0],
                                         SessionShape{ranks, std::vector(lanes, threads)},
                                         std::vector<Doorbell*>{});
  }
  ~TestSession() { close(trainer_end_); }
  TestSession(const TestSession&) = delete;
  TestSession& operator=(const TestSession&) = delete;

  Session& operator*() { return *session_; }
  Session* operator->() { return session_.get(); }

  // Whether the trainer was rung since the last call.
  bool is_rung() {
    char bells[64];
    return recv(trainer_end_, bells, sizeof bells, MSG_DONTWAIT) > 0;
  }

  float* buffer() { return reinterpret_cast<float*>(base() + shared::kHeapOffset); }
  std::uint8_t* base() { return session_->region().base(); }
  void fill(std::uint64_t count, float value) { std::fill_n(buffer(), count, value); }

  // A sum of the first `count` elements of the buffer; the engine takes it at its next poll().
  void submit(std::uint64_t count,
              control::CollectiveKind kind = control::CollectiveKind::all_reduce,
              std::uint8_t lane = 0) {
    shared::Submission& entry = submission_entry(session_->region(), submitted_);
    entry = {};
    entry.request = ++submitted_;
    entry.offset = shared::kHeapOffset;
    entry.count = count;
    entry.collective.kind = static_cast<std::uint8_t>(kind);
    entry.collective.lane = lane;
    session_->region().header().submission_tail.store(submitted_);
  }
  // The same, published to executors.
  void publish(std::uint64_t count,
               control::CollectiveKind kind = control::CollectiveKind::all_reduce) {
    submit(count, kind);
    ASSERT_EQ(session_->take(), Session::Take::taken);
  }

 private:
  std::unique_ptr<Session> session_;
  int trainer_end_ = -1;
  std::uint64_t submitted_ = 0;
};

// Keeps what an engine reports, unless it refuses.
class Events final : public EventSink {
 public:
  bool report(const EngineEvent& event) override {
    if (!refuses) events.push_back(event);
    return !refuses;
  }
  std::vector<EngineEvent> events;
  bool refuses = false;
};

// A port of one queue: the test puts packets in, and takes out what was sent.
class FakePort final : public Port {
 public:
  explicit FakePort(std::uint16_t per_iteration = kBurst) : Port(1, 9000, per_iteration) {}
  ~FakePort() override {
    for (rte_mbuf* packet : arriving) rte_pktmbuf_free(packet);
    for (rte_mbuf* packet : sent) rte_pktmbuf_free(packet);
  }

  std::uint16_t receive(std::uint16_t, rte_mbuf** packets, std::uint16_t count) override {
    std::uint16_t received = 0;
    for (; received < count && !arriving.empty(); ++received) {
      packets[received] = arriving.front();
      arriving.pop_front();
    }
    count_received(0, received, total_bytes(packets, received));
    return received;
  }
  std::uint16_t transmit(std::uint16_t, rte_mbuf** packets, std::uint16_t count) override {
    sent.insert(sent.end(), packets, packets + count);
    count_sent(0, count, total_bytes(packets, count));
    return count;
  }
  std::uint16_t transmit_room(std::uint16_t) const override { return room; }

  std::deque<rte_mbuf*> arriving;
  std::deque<rte_mbuf*> sent;
  std::uint16_t room = 64;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_ENGINE_FIXTURE_H_
