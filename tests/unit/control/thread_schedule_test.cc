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

constexpr std::uint32_t kSegments = 3;  // of each piece

// Calls visit(plan, schedule, server, thread) for every thread of every server of small topologies.
void for_every_thread(
    const std::function<void(const Plan&, const ThreadSchedule&, ServerId, unsigned)>& visit) {
  for (const Topology& topology : small_topologies(30)) {
    const Plan plan = make_plan("bml", topology, "test");
    SCOPED_TRACE(topology.spec());
    for (ServerId server = 0; server < plan.servers(); ++server) {
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        visit(plan, ThreadSchedule(plan, server, thread), server, thread);
      }
    }
  }
}

// The owner of the piece at position q of the stream that `receiver` receives at step w.
ServerId owner_at(const Plan& plan, unsigned thread, unsigned w, ServerId receiver,
                  std::uint32_t q) {
  const std::vector<ServerId> owners = stream_owners(plan, thread, w, receiver);
  return owners[q % owners.size()];
}

TEST(ThreadSchedule, HasThePlansLevelsDigitsAndPieces) {
  for_every_thread(
      [](const Plan& plan, const ThreadSchedule& schedule, ServerId server, unsigned thread) {
        ASSERT_EQ(schedule.steps(), plan.steps());
        for (unsigned w = 0; w < schedule.steps(); ++w) {
          const ScheduleStep& step = schedule.step(w);
          ASSERT_EQ(step.stride, plan.space().weight(plan.level(thread, w).value()));
          ASSERT_EQ(step.radix, plan.radix(thread, w));
          ASSERT_EQ(step.digit, plan.space().digit(server, plan.level(thread, w).value()));
          ASSERT_EQ(step.pieces, stream_owners(plan, thread, w, server).size());
          for (unsigned r = 0; r < step.radix; ++r) {
            ASSERT_EQ(schedule.offset_of_digit(w, schedule.digit_at_offset(w, r)), r);
            ASSERT_EQ(schedule.peer(w, r),
                      plan.peer(server, thread, w, schedule.digit_at_offset(w, r)));
          }
        }
      });
}

TEST(ThreadSchedule, NamesOnePieceByOnePositionInEveryStreamThatItPasses) {
  for_every_thread(
      [](const Plan& plan, const ThreadSchedule& schedule, ServerId server, unsigned thread) {
        for (unsigned w = 1; w < schedule.steps(); ++w) {
          for (unsigned r = 0; r < schedule.step(w).radix; ++r) {
            const ServerId receiver = plan.peer(server, thread, w, schedule.digit_at_offset(w, r));
            for (std::uint32_t q = 0; q < kSegments * schedule.step(w).pieces; ++q) {
              const std::uint32_t before = schedule.at_previous_step(w, r, q);
              ASSERT_EQ(owner_at(plan, thread, w - 1, server, before),
                        owner_at(plan, thread, w, receiver, q));
              ASSERT_EQ(before / schedule.step(w - 1).pieces, q / schedule.step(w).pieces)
                  << "another segment of it";
              const ThreadSchedule::NextStep next = schedule.at_next_step(w - 1, before);
              ASSERT_EQ(next.offset, r);
              ASSERT_EQ(next.position, q);
            }
          }
        }
      });
}

TEST(ThreadSchedule, FindsEachResultAtItsOwnerOrInTheStreamThatBringsItBack) {
  for_every_thread([](const Plan& plan, const ThreadSchedule& schedule, ServerId server,
                      unsigned thread) {
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      for (std::uint32_t q = 0; q < kSegments * schedule.step(w).pieces; ++q) {
        const ServerId owner = owner_at(plan, thread, w, server, q);
        const ThreadSchedule::ResultSource source = schedule.result_source(w, q);
        ASSERT_EQ(source.own, owner == server);
        if (source.own) {
          ASSERT_EQ(source.step, schedule.last_step());
          ASSERT_EQ(source.position, q / schedule.step(w).pieces);
          continue;
        }
        ASSERT_GT(source.step, w);
        const ServerId peer = plan.peer(server, thread, source.step,
                                        schedule.digit_at_offset(source.step, source.offset));
        ASSERT_EQ(owner_at(plan, thread, source.step, peer, source.position), owner);
        ASSERT_EQ(source.position / schedule.step(source.step).pieces, q / schedule.step(w).pieces);
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

TEST(ThreadSchedule, RefusesAPatternThatIsNotRun) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  for (const Pattern pattern : {Pattern::ring, Pattern::root, Pattern::local}) {
    const Plan plan("other", topology, Placement::all(topology),
                    {{1, {{9, 1}}}, {1, {{3, 3}, {3, 1, pattern}}}});
    EXPECT_NO_THROW(ThreadSchedule(plan, 0, 0));
    EXPECT_EQ(message_of<std::invalid_argument>([&] { ThreadSchedule(plan, 0, 1); }),
              "algorithm other, thread 1, step 1: a step of pattern " +
                  std::string(pattern_name(pattern)) +
                  " cannot be run; expected a step of pattern mesh");
  }
}

TEST(ThreadSchedule, RefusesAMeshOfMoreRanksThanAnOffsetCanName) {
  const Topology topology = parse_topology("bcube:32,2", "test");
  const Plan plan("flat", topology, Placement::all(topology), {{1, {{1024, 1}}}});
  EXPECT_EQ(message_of<std::invalid_argument>([&] { ThreadSchedule(plan, 0, 0); }),
            "algorithm flat, thread 0, step 0: a mesh of 1024 ranks cannot be run; expected a "
            "radix of at most 256");
}

}  // namespace
}  // namespace gradcube::control
