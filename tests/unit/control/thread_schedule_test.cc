#include "control/plan/thread_schedule.h"

#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/stream_order.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

// Calls visit(plan, schedule, server, thread) for every thread of every server of small topologies,
// by every algorithm that fits.
void for_every_thread(
    const std::function<void(const Plan&, const ThreadSchedule&, ServerId, unsigned)>& visit) {
  for (const Topology& topology : small_topologies(30)) {
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      SCOPED_TRACE(plan.algorithm() + " on " + topology.spec());
      for (ServerId server = 0; server < plan.servers(); ++server) {
        for (unsigned thread = 0; thread < plan.threads(); ++thread) {
          visit(plan, ThreadSchedule(plan, server, thread), server, thread);
        }
      }
    }
  }
}

TEST(ThreadSchedule, HasThePlansStepsDigitsAndPieces) {
  for_every_thread(
      [](const Plan& plan, const ThreadSchedule& schedule, ServerId server, unsigned thread) {
        ASSERT_EQ(schedule.steps(), plan.steps());
        for (unsigned w = 0; w < schedule.steps(); ++w) {
          const ScheduleStep& step = schedule.step(w);
          ASSERT_EQ(step.stride, plan.step(thread, w).stride);
          ASSERT_EQ(step.radix, plan.radix(thread, w));
          ASSERT_EQ(step.digit, plan.digit(server, thread, w));
          ASSERT_EQ(step.pieces, stream_owners(plan, thread, w, server).size());
          for (unsigned r = 0; r < step.radix; ++r) {
            ASSERT_EQ(schedule.offset_of_digit(w, schedule.digit_at_offset(w, r)), r);
            ASSERT_EQ(schedule.peer(w, r),
                      plan.peer(server, thread, w, schedule.digit_at_offset(w, r)));
          }
        }
      });
}

TEST(ThreadSchedule, RotatesStreamsByTheReceiversOwnDigits) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,3", "test"), "test");
  const AddressSpace& space = plan.space();
  // Thread 0's step 0 fixes level 0; step 1's digit (level 1) is the most significant of the index.
  std::vector<std::string> owners;
  for (const ServerId owner : stream_owners(plan, 0, 0, space.parse("2,1,0"))) {
    owners.push_back(space.suffix(owner));
  }
  EXPECT_EQ(owners, (std::vector<std::string>{"2-1-0", "0-1-0", "1-1-0", "2-2-0", "0-2-0", "1-2-0",
                                              "2-0-0", "0-0-0", "1-0-0"}));
}

TEST(ThreadSchedule, OfARingHasTwoPeersAndARoundLessThanDigits) {
  const Topology topology = parse_topology("bcube:5,2", "test");
  const Plan plan = make_plan("hips:ring,mesh", topology, "test");
  const ThreadSchedule schedule(plan, 7, 0);
  const ScheduleStep& ring = schedule.step(0);
  EXPECT_EQ(ring.rounds, 4u);
  ASSERT_EQ(ring.peers, 2u);
  EXPECT_EQ(schedule.peer(0, ring.offset_of_peer(0)), 8u);
  EXPECT_EQ(schedule.peer(0, ring.offset_of_peer(1)), 6u);
  const ScheduleStep& mesh = schedule.step(1);
  EXPECT_EQ(mesh.rounds, 1u);
  EXPECT_EQ(mesh.peers, 4u);
  for (const ScheduleStep* step : {&ring, &mesh}) {
    for (unsigned i = 0; i < step->peers; ++i) {
      EXPECT_EQ(step->number_of_peer(step->offset_of_peer(i)), i);
    }
  }
}

TEST(ThreadSchedule, TakesARingOfTwoForAMesh) {
  const Topology topology = parse_topology("bcube:2,1", "test");
  const ThreadSchedule schedule(make_plan("hips:ring", topology, "test"), 1, 0);
  EXPECT_FALSE(schedule.step(0).is_ring());
  EXPECT_EQ(schedule.step(0).peers, 1u);
}

}  // namespace
}  // namespace gradcube::control
