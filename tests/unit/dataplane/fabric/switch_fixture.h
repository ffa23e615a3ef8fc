// A switch on a virtual clock, with the frames that a test sends and what comes out where.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_SWITCH_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_SWITCH_FIXTURE_H_

#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "dataplane/fabric/emulated/emulated_switch.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "tests/unit/dataplane/fabric/frame_fixture.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

// A switch with `servers` ports, frames and a clock. At the end of every test no packet may be
// missing.
class SwitchTest : public FrameTest {
 protected:
  SwitchTest() : clones_(pool_options("clones")) {}

  void TearDown() override {
    switch_.reset();
    ports_.clear();
    check_frames();
    EXPECT_EQ(packets_in_use(clones_), 0u) << "clones have leaked";
  }

  void build(std::uint16_t servers, const EmulatedSwitchOptions& options,
             const RingPortOptions& port_options = {}, bool with_clones = true) {
    switch_.reset();
    ports_.clear();
    std::vector<SwitchPort> cables;
    for (std::uint16_t server = 0; server < servers; ++server) {
      ports_.push_back(std::make_unique<RingPort>(port_options));
      cables.push_back({ports_.back().get(), {mac_of(server)}, server});
    }
    switch_ = std::make_unique<EmulatedSwitch>(options, cables, with_clones ? &clones_ : nullptr);
  }

  using FrameTest::send;
  bool send(std::uint16_t from, const FrameSpec& spec) { return send(*ports_[from], spec); }

  unsigned poll() {
    unsigned moved = 0;
    for (std::uint16_t s = 0; s < switch_->shards(); ++s) {
      moved += switch_->shard(s).poll(clock_.now());
    }
    return moved;
  }

  using FrameTest::received;
  std::vector<rte_mbuf*> received(std::uint16_t server, std::uint16_t queue = 0) {
    return received(*ports_[server], queue);
  }

  using FrameTest::received_numbers;
  std::vector<std::uint32_t> received_numbers(std::uint16_t server, std::uint16_t queue = 0) {
    return received_numbers(*ports_[server], queue);
  }

  // Goes from event to event until nothing is left inside the switch.
  template <typename Look>
  void run_until_quiet(Look&& look) {
    for (int rounds = 0; rounds < 1'000'000; ++rounds) {
      const unsigned moved = poll();
      look();
      if (moved != 0) continue;
      const std::int64_t next = switch_->shard(0).next_event();
      if (next == kNever) return;
      clock_.advance_to(next);
    }
    FAIL() << "the switch never comes to rest";
  }

  PacketPool clones_;
  VirtualClock clock_{1'000'000};
  std::vector<std::unique_ptr<RingPort>> ports_;
  std::unique_ptr<EmulatedSwitch> switch_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_SWITCH_FIXTURE_H_
