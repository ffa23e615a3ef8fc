#include "control/plan/stream_positions.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/stream_order.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

// One thread of one server, with blocks of one depth.
struct Member {
  const Plan& plan;
  ThreadSchedule schedule;
  StreamPositions positions;

  unsigned thread() const { return schedule.thread(); }
  // Where blocks are pieces, these can have several segments.
  std::uint32_t count(unsigned w) const {
    return positions.blocks(w) * (positions.depth() == schedule.steps() ? 3 : 1);
  }
  std::uint32_t segment(unsigned w, std::uint32_t q) const { return q / positions.blocks(w); }

  // The owners of the pieces at position q of the stream that `receiver` receives at step w.
  std::set<ServerId> owners(unsigned w, ServerId receiver, std::uint32_t q) const {
    const std::vector<ServerId> all = stream_owners(plan, thread(), w, receiver);
    const std::size_t in_block = all.size() / positions.blocks(w);
    const auto first =
        all.begin() + static_cast<std::ptrdiff_t>(q % positions.blocks(w) * in_block);
    return {first, first + static_cast<std::ptrdiff_t>(in_block)};
  }
  // The same of this server's receive stream, and of its send stream to the peer at offset r.
  std::set<ServerId> received(unsigned w, std::uint32_t q) const {
    return owners(w, schedule.rank(), q);
  }
  std::set<ServerId> sent(unsigned w, unsigned r, std::uint32_t q) const {
    return owners(w, schedule.peer(w, r), q);
  }
};

// Every thread of every server of small topologies, at every depth, by every algorithm that fits.
void for_every_member(const std::function<void(const Member&)>& visit) {
  for (const Topology& topology : small_topologies(30)) {
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      SCOPED_TRACE(plan.algorithm() + " on " + topology.spec());
      for (ServerId server = 0; server < plan.servers(); ++server) {
        for (unsigned thread = 0; thread < plan.threads(); ++thread) {
          const ThreadSchedule schedule(plan, server, thread);
          for (unsigned depth = 1; depth <= schedule.steps(); ++depth) {
            visit({plan, schedule, StreamPositions(schedule, depth)});
          }
        }
      }
    }
  }
}

TEST(StreamPositions, HaveAPieceInABlockAtTheGreatestDepthAndOneBlockAtTheLeast) {
  for_every_member([](const Member& member) {
    for (unsigned w = 0; w < member.schedule.steps(); ++w) {
      if (member.positions.depth() == 1) {
        ASSERT_EQ(member.positions.blocks(w), 1u);
      }
      if (member.positions.depth() == member.schedule.steps()) {
        ASSERT_EQ(member.positions.blocks(w), member.schedule.step(w).pieces);
      }
    }
  });
}

TEST(StreamPositions, CountTheBlocksOfTheDivisionsUpToTheDepth) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,4", "test"), "test");
  const StreamPositions positions(ThreadSchedule(plan, 0, 0), 3);
  EXPECT_EQ(positions.blocks(0), 9u);
  EXPECT_EQ(positions.blocks(1), 3u);
  EXPECT_EQ(positions.blocks(2), 1u);
  EXPECT_EQ(positions.blocks(3), 1u) << "a third of a block";
}

TEST(StreamPositions, NameThePartialSumThatAPositionNeedsAndWhereItGoes) {
  for_every_member([](const Member& member) {
    const StreamPositions& positions = member.positions;
    for (unsigned w = 1; w < member.schedule.steps(); ++w) {
      const ScheduleStep& step = member.schedule.step(w);
      for (unsigned r = step.sums ? 0 : step.send_streams.first; r < step.send_streams.end; ++r) {
        for (std::uint32_t q = 0; q < member.count(w); ++q) {
          const std::uint32_t before = positions.at_previous_step(w, r, q);
          const std::set<ServerId> needed = member.sent(w, r, q);
          const std::set<ServerId> summed = member.received(w - 1, before);
          ASSERT_TRUE(std::includes(summed.begin(), summed.end(), needed.begin(), needed.end()));
          ASSERT_EQ(member.segment(w - 1, before), member.segment(w, q)) << "another segment of it";
          const StreamPositions::NextStep next = positions.at_next_step(w - 1, before);
          ASSERT_EQ(next.position, q);
          ASSERT_EQ(next.divided, needed.size() < summed.size() || member.plan.doubles());
          ASSERT_TRUE(next.divided || next.offset == r);
        }
      }
    }
  });
}

TEST(StreamPositions, FindEachResultAtItsOwnerOrInTheStreamsThatBringItBack) {
  for_every_member([](const Member& member) {
    const ThreadSchedule& schedule = member.schedule;
    if (schedule.plan_doubles()) return;  // nothing comes back
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      if (!schedule.step(w).sums) continue;
      for (std::uint32_t q = 0; q < member.count(w); ++q) {
        const StreamPositions::ResultSource source = member.positions.result_source(w, q);
        ASSERT_GT(source.step, w);
        std::set<ServerId> known;
        if (source.own) {
          ASSERT_EQ(source.position, member.segment(w, q));
          if (schedule.step(schedule.last_step()).sums) known.insert(schedule.rank());
          for (unsigned u = source.step; u < schedule.steps(); ++u) {
            const Offsets& streams = schedule.step(u).send_streams;
            for (unsigned r = streams.first; r < streams.end; ++r) {
              known.merge(member.sent(u, r, source.position));
            }
          }
        } else {
          ASSERT_NE(source.offset, 0u);
          ASSERT_EQ(member.segment(source.step, source.position), member.segment(w, q));
          known = member.sent(source.step, source.offset, source.position);
        }
        ASSERT_EQ(known, member.received(w, q));
      }
    }
  });
}

}  // namespace
}  // namespace gradcube::control
