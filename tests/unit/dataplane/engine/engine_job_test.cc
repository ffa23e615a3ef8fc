// How many packets may point into a trainer's memory: as many as the job has reserved, and as DPDK
// can count in 16 bits.

#include "dataplane/engine/engine_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/engine/engine.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {
namespace {

TEST(Engine, SaysHowManyFlowsAJobHasHere) {
  PacketPool packets = make_pool("flows", 63);
  FakePort port;
  Events events;
  EngineSettings settings;
  settings.threads = {0};
  settings.segment_bytes = 64;
  const bcube::AddressSpace space = control::parse_topology("star:256", "test").space();
  protocol::PortCredit credit({});
  const Engine engine(settings, space, {{&port, &credit}}, {packets, packets}, events);
  EXPECT_EQ(engine.check(bml_lanes("star:256"), 1 << 16), 2u * 255 + 1);
  EXPECT_EQ(engine.check(bml_lanes("star:256", 3), 1 << 16), 3u * 2 * 255 + 1);
}

TEST(Engine, RefusesAHeapWhoseSegmentsCouldNotBeNumbered) {
  PacketPool packets = make_pool("numbered", 63);
  FakePort port;
  Events events;
  EngineSettings settings;
  settings.threads = {0};
  settings.segment_bytes = 64;
  const bcube::AddressSpace space = control::parse_topology("star:2", "test").space();
  protocol::PortCredit credit({});
  const Engine engine(settings, space, {{&port, &credit}}, {packets, packets}, events);
  EXPECT_NO_THROW(engine.check(bml_lanes("star:2"), std::uint64_t{1} << 36));
  try {
    engine.check(bml_lanes("star:2"), std::uint64_t{1} << 48);
    FAIL() << "it was accepted";
  } catch (const control::SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("smaller heap"));
  }
}

// Points all packets that the job may have into the memory of its trainer.
std::vector<rte_mbuf*> point_all(EngineJob& job, TestSession& session, PacketPool& packets) {
  std::vector<rte_mbuf*> pointing;
  while (job.payloads().may_point()) {
    pointing.push_back(packets.allocate());
    if (pointing.back() == nullptr) break;
    job.payloads().point_at(pointing.back(), session.base(), 64);
  }
  return pointing;
}

TEST(EngineJob, PointsNoMorePacketsIntoMemoryThanItHasReserved) {
  TestSession session(1);
  PacketPool packets = make_pool("reserved", 63);
  PacketShare share(40);
  {
    EngineJob job(1, *session, {}, 1, true, {8, *share.reserve(10)});
    EXPECT_EQ(job.reserved(), 10u);
    std::vector<rte_mbuf*> pointing = point_all(job, session, packets);
    EXPECT_EQ(pointing.size(), 10u);
    EXPECT_EQ(job.references(), 10u);
    rte_pktmbuf_free(pointing.back());
    pointing.pop_back();
    EXPECT_TRUE(job.payloads().may_point());
    for (rte_mbuf* packet : pointing) rte_pktmbuf_free(packet);
    EXPECT_EQ(job.references(), 0u);
    EXPECT_EQ(share.free(), 30u);
  }
  EXPECT_EQ(share.free(), 40u);
}

TEST(EngineJob, PointsNoMorePacketsIntoMemoryThanDpdkCanCount) {
  TestSession session(1);
  PacketPool packets = make_pool("counted", PayloadPackets::kMost + 100, 0);
  PacketShare share(2 * PayloadPackets::kMost);
  EngineJob job(1, *session, {}, 1, true, {8, *share.reserve(2 * PayloadPackets::kMost)});
  const std::vector<rte_mbuf*> pointing = point_all(job, session, packets);
  EXPECT_EQ(pointing.size(), PayloadPackets::kMost);
  EXPECT_EQ(job.references(), PayloadPackets::kMost);
  for (rte_mbuf* packet : pointing) rte_pktmbuf_free(packet);
  EXPECT_EQ(job.references(), 0u);
}

}  // namespace
}  // namespace gradcube::dataplane
