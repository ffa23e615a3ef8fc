// Packet memory that is short: what jobs get of it, and what one that takes all it may does to the
// others.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/jobs_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using dataplane::Departure;
using dataplane::JoinRefused;

// 128 of mbuf, headroom and headers, and a mempool's header.
constexpr std::uint64_t kBytesOfPacket = 3 * 128 + 64;

// Four servers with room for some 300 segments each. A job has 8 flows at each engine, and one
// window for its messages, so its windows of 16 take 144 segments, those of 4 take 36.
class LittlePacketMemory : public testing::Test {
 protected:
  explicit LittlePacketMemory(std::vector<std::pair<std::string, std::string>> more = {})
      : cluster_(settings_of(with(std::move(more)))) {
    large_.count = 400'000;
    small_.count = 5'003;
  }

  static std::vector<std::pair<std::string, std::string>> with(
      std::vector<std::pair<std::string, std::string>> more) {
    more.insert(more.begin(),
                {{"topology", "bcube:2,2"}, {"mtu", "1500"}, {"packet-memory", "1.1M"}});
    return more;
  }

  Trainers join(const std::string& job) { return cluster_.join_all(job, heap_for(large_), "bml"); }
  // The first server's.
  std::string refusal(const std::string& job) {
    try {
      cluster_.join(job, 0, 4096);
    } catch (const JoinRefused& refused) {
      EXPECT_EQ(refused.code(), GRADCUBE_EJOB);
      return refused.what();
    }
    return "";
  }
  unsigned window_of(const std::string& name) {
    const auto jobs = cluster_.jobs();
    const auto job =
        std::find_if(jobs.begin(), jobs.end(), [&](const auto& each) { return each.name == name; });
    return job == jobs.end() ? 0 : job->window;
  }
  void submit_all_but(const Trainers& trainers, unsigned late, const Collective& collective) {
    for (const auto& trainer : trainers) {
      if (trainer->rank() != late) fill_and_submit(*trainer, collective);
    }
  }
  std::uint64_t reserved() { return cluster_.cluster().reserved_bytes(); }

  SimulatedCluster cluster_;
  Collective large_;
  Collective small_;
};

TEST_F(LittlePacketMemory, GivesLaterJobsSmallerWindowsAndRefusesTheOneThatHasNoRoom) {
  const Trainers first = join("first");
  const Trainers second = join("second");
  const Trainers third = join("third");
  const Trainers fourth = join("fourth");
  EXPECT_EQ(window_of("first"), 16u);
  EXPECT_EQ(window_of("second"), 8u);
  EXPECT_EQ(window_of("third"), 4u);
  EXPECT_EQ(window_of("fourth"), 4u);
  const std::string refused = refusal("fifth");
  for (const char* words : {"\"fifth\"", "server [0,0]", "least window of 4 segments", "is free",
                            "--packet-memory", "fewer lanes"}) {
    EXPECT_NE(refused.find(words), std::string::npos) << words << " in: " << refused;
  }
  for (const Trainers* trainers : {&first, &second, &third, &fourth}) {
    allreduce(cluster_, *trainers, large_);
    leave_all(cluster_, *trainers);
  }
}

TEST_F(LittlePacketMemory, IsGivenBackWhenJobsLeaveDieAreRefusedAndNeverBegin) {
  ASSERT_EQ(reserved(), 0u);
  const auto expect_all_free = [&](const char* why) {
    EXPECT_TRUE(cluster_.run_until([&] { return reserved() == 0; }, 30 * kSecond)) << why;
  };
  Trainers trainers = join("leaves");
  EXPECT_GT(reserved(), 0u);
  leave_all(cluster_, trainers);
  expect_all_free("all have left");

  trainers = join("dies");
  submit_all_but(trainers, 3, large_);
  cluster_.run_for(10 * kMillisecond);
  cluster_.leave(*trainers[1], Departure::death);
  expect_all_free("a trainer has died, and the others have not left yet");
  for (const auto& trainer : trainers) {
    if (trainer != trainers[1]) cluster_.leave(*trainer, Departure::orderly);
  }

  dataplane::TrainerRequest other{"refused", 1};
  other.heap_bytes = 4096;
  auto waits = cluster_.join("refused", 0, 4096);
  other.options.weight = 2;
  EXPECT_THROW(cluster_.join(1, other), JoinRefused);
  cluster_.leave(*waits, Departure::orderly);
  expect_all_free("the job never began");

  cluster_.kill(2);
  cluster_.start_anew(2);
  trainers = join("again");
  // The new daemon is asked who it is first.
  const auto admitted = [](const auto& trainer) { return trainer->admitted(); };
  ASSERT_TRUE(cluster_.run_until(
      [&] { return std::all_of(trainers.begin(), trainers.end(), admitted); }, kSecond));
  EXPECT_EQ(window_of("again"), 16u);
  allreduce(cluster_, trainers, large_);
  leave_all(cluster_, trainers);
  expect_all_free("the end");
}

TEST_F(LittlePacketMemory, IsGivenBackWhenAServerDies) {
  const Trainers trainers = join("job");
  submit_all_but(trainers, 3, large_);
  cluster_.run_for(10 * kMillisecond);
  cluster_.kill(2);
  EXPECT_TRUE(cluster_.run_until([&] { return reserved() == 0; }, 30 * kSecond));
}

// All that the others may send waits at the late trainer's server, and fills the job's part.
TEST_F(LittlePacketMemory, OfAJobWithALateTrainerStopsNoOtherJob) {
  const Trainers late = join("late");
  const Trainers other = join("other");
  submit_all_but(late, 3, large_);
  cluster_.run_for(100 * kMillisecond);
  const unsigned held = cluster_.packets_in_use();
  EXPECT_GE(held, 2u * 3 * 16) << "three neighbours' windows wait";
  for (int i = 0; i < 3; ++i) allreduce(cluster_, other, large_);
  EXPECT_FALSE(all_idle(late));
  EXPECT_GE(cluster_.packets_in_use(), held);
  fill_and_submit(*late[3], large_);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(late); }, 60 * kSecond));
  expect_right(cluster_, late, large_);
  leave_all(cluster_, late);
  leave_all(cluster_, other);
}

// With a rate the windows are larger than what lies in the queues.
class LittlePacketMemoryAtARate : public LittlePacketMemory {
 protected:
  LittlePacketMemoryAtARate() : LittlePacketMemory({{"rate", "1gbit"}}) {}
};

TEST_F(LittlePacketMemoryAtARate, MakesWindowsSmallerFromTheFirstJobOn) {
  const Trainers first = join("first");
  const Trainers second = join("second");
  EXPECT_EQ(window_of("first"), 16u) << "the full window of 64 would take more than there is";
  EXPECT_EQ(window_of("second"), 8u);
  allreduce(cluster_, first, large_);
  allreduce(cluster_, second, large_);
  leave_all(cluster_, first);
  leave_all(cluster_, second);
}

// Losses and late frames: segments are sent again, also some that have arrived.
class LittlePacketMemoryOnBadLinks : public LittlePacketMemory {
 protected:
  LittlePacketMemoryOnBadLinks()
      : LittlePacketMemory({{"loss", "0.1"}, {"reorder", "0.2"}, {"duplicate", "0.1"}}) {}
};

TEST_F(LittlePacketMemoryOnBadLinks, IsNeverExceeded) {
  const Trainers one = join("one");
  const Trainers two = join("two");
  const std::uint64_t most = reserved() / kBytesOfPacket;
  submit_all_but(one, 2, large_);
  for (const auto& trainer : two) fill_and_submit(*trainer, large_);
  std::uint64_t peak = 0;
  const auto done = [&] {
    peak = std::max<std::uint64_t>(peak, cluster_.segment_packets_in_use());
    return all_idle(two);
  };
  EXPECT_TRUE(cluster_.run_until(done, 60 * kSecond));
  EXPECT_GT(cluster_.counters().resent, 0u);
  EXPECT_GT(peak, most / 5) << "too little was sent to show anything";
  EXPECT_LE(peak, most);
  fill_and_submit(*one[2], large_);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(one); }, 60 * kSecond));
  expect_right(cluster_, one, large_);
  expect_right(cluster_, two, large_);
  leave_all(cluster_, one);
  leave_all(cluster_, two);
}

}  // namespace
}  // namespace gradcube::simulation
