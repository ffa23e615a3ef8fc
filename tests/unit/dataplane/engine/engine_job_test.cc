// How many packets may point into a trainer's memory: DPDK counts them in 16 bits.

#include "dataplane/engine/engine_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/engine/engine.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {
namespace {

TEST(Engine, RefusesAJobWhosePacketsOnTheirWayCouldNotBeCounted) {
  PacketPool packets = make_pool("refused", 63);
  FakePort port;
  Events events;
  EngineSettings settings;
  settings.threads = {0};
  settings.segment_bytes = 64;
  settings.window = 64;
  const bcube::AddressSpace space = control::parse_topology("star:256", "test").space();
  protocol::PortCredit credit({});
  const Engine engine(settings, space, {{&port, &credit}}, packets, events);
  TestSession session(1, 1 << 16, 2, 256);
  const aggregation::Kernels& kernels = aggregation::select_kernels(0);
  EXPECT_NO_THROW(engine.prepare(1, *session, bml_lanes("star:256"), 1, kernels));
  EXPECT_NO_THROW(engine.check(bml_lanes("star:256"), 1 << 16));
  EXPECT_THROW(engine.check(bml_lanes("star:256", 2), 1 << 16), control::SetupError);
  try {
    engine.prepare(1, *session, bml_lanes("star:256", 2), 1, kernels);
    FAIL() << "it was accepted";
  } catch (const control::SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("fewer lanes"));
    EXPECT_THAT(error.what(), testing::HasSubstr("130560 packets"));
  }
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
  const Engine engine(settings, space, {{&port, &credit}}, packets, events);
  EXPECT_NO_THROW(engine.check(bml_lanes("star:2"), std::uint64_t{1} << 36));
  try {
    engine.check(bml_lanes("star:2"), std::uint64_t{1} << 48);
    FAIL() << "it was accepted";
  } catch (const control::SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("smaller heap"));
  }
}

TEST(EngineJob, PointsNoMorePacketsIntoMemoryThanItCanCount) {
  TestSession session(1);
  EngineJob job(1, *session, {}, 1, true);
  PacketPool packets = make_pool("pointing", EngineJob::kMostReferences, 0);
  std::vector<rte_mbuf*> pointing(EngineJob::kMostReferences);
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(packets.get(), pointing.data(), EngineJob::kMostReferences), 0);
  for (rte_mbuf* packet : pointing) {
    ASSERT_TRUE(job.may_point());
    job.point_at(packet, session.base(), 64);
  }
  EXPECT_FALSE(job.may_point());
  EXPECT_EQ(job.references(), EngineJob::kMostReferences);
  rte_pktmbuf_free(pointing.back());
  EXPECT_TRUE(job.may_point());
  pointing.pop_back();
  for (rte_mbuf* packet : pointing) rte_pktmbuf_free(packet);
  EXPECT_EQ(job.references(), 0u);
}

}  // namespace
}  // namespace gradcube::dataplane
