// Trainers that submit different collectives under one number: what completes, what fails, and who
// waits for whom.

#include <algorithm>
#include <array>

#include "tests/simulation/jobs_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

TEST_F(Jobs, SurviveADisagreementWithAnErrorForEveryTrainerThatSaysWhoSubmittedWhat) {
  const Trainers trainers = join();
  Collective other = collective_;
  other.count -= 1;
  for (const auto& trainer : trainers) {
    fill_and_submit(*trainer, trainer->rank() == 2 ? other : collective_);
  }
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  for (const auto& trainer : trainers) {
    EXPECT_EQ(codes(*trainer), std::vector<std::int32_t>{GRADCUBE_EMISMATCH});
    ASSERT_EQ(cluster_.told(*trainer).size(), 1u);
    EXPECT_EQ(cluster_.told(*trainer).back().notice.code, GRADCUBE_EMISMATCH);
    EXPECT_EQ(cluster_.told(*trainer).back().notice.number, 1u);
    const std::string message = last_message(*trainer);
    EXPECT_NE(message.find("5002 float32 sum"), std::string::npos) << message;
    EXPECT_NE(message.find("5003 float32 sum"), std::string::npos) << message;
    EXPECT_NE(message.find("[1,0]"), std::string::npos) << message;
  }
  allreduce(cluster_, trainers, collective_);
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, CompleteWhatComesBeforeADisagreementAlsoWhereItIsSubmittedLater) {
  const Trainers trainers = cluster_.join_all("job", 1 << 20);
  const auto order = [](unsigned number, unsigned rank) {
    Collective one;
    one.offset += (number - 1) * 65'536;
    one.count = number == 6 && rank == 1 ? 4'000 : 5'000;
    return one;
  };
  const auto submit = [&](unsigned first, unsigned last, unsigned rank) {
    for (unsigned i = first; i <= last; ++i) fill_and_submit(*trainers[rank], order(i, rank));
  };
  for (const unsigned rank : {0U, 1U, 3U}) submit(1, 10, rank);
  submit(1, 2, 2);
  // The disagreement needs no more than two of the four.
  cluster_.run_for(100 * kMillisecond);
  EXPECT_EQ(cluster_.jobs().front().waiting_for, std::vector<bcube::ServerId>{2});
  const std::string why = cluster_.explain(*trainers[0], {0, 3});
  EXPECT_NE(why.find("not submitted it: [1,0]"), std::string::npos) << why;
  submit(3, 10, 2);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  for (const auto& trainer : trainers) {
    std::vector<std::int32_t> expected(10, GRADCUBE_EMISMATCH);
    std::fill_n(expected.begin(), 5, 0);
    EXPECT_EQ(codes(*trainer), expected) << "at server " << trainer->rank();
    const Expected sum =
        expected_result(plan_of(cluster_, order(5, 0)), {}, order(5, 0), trainer->rank());
    EXPECT_EQ(wrong_elements(*trainer, order(5, 0), sum), 0u);
  }
  leave_all(cluster_, trainers);
}

// Else one that is reset passes for done with what fails, or what fails is a trainer's again while
// another engine works on it.
TEST(Disagreements, ResetNoEngineWhileAnotherOneOfItsServerGoesOn) {
  SimulationSettings settings = settings_of({{"topology", "bcube:2,2"}});
  settings.lcores = 2;
  SimulatedCluster cluster(settings);
  Collective collective;
  collective.count = 16;
  const Trainers trainers = cluster.join_all("job", heap_for(collective));
  unsigned half_reset = 0;
  const auto look = [&] {
    for (const bcube::ServerId server : cluster.plan().space().server_list()) {
      const auto job_at = [](const dataplane::EngineAt& at) { return at.engine->jobs().front(); };
      const auto engines = cluster.cluster().engines(server);
      ASSERT_EQ(engines.size(), 2u);
      const dataplane::EngineJob* one = job_at(engines[0]);
      const dataplane::EngineJob* other = job_at(engines[1]);
      if (one->epoch == other->epoch) continue;
      ++half_reset;
      const dataplane::EngineJob* behind = one->epoch < other->epoch ? one : other;
      EXPECT_EQ(behind->state, dataplane::EngineJob::State::halted);
    }
  };
  for (const auto& poller : cluster.cluster().pollers()) poller->set_meanwhile(look);
  for (const auto& trainer : trainers) {
    Collective own = collective;
    own.count += trainer->rank() == 2 ? 1 : 0;
    fill_and_submit(*trainer, own);
  }
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  EXPECT_EQ(half_reset, 4u) << "servers";
  for (const auto& poller : cluster.cluster().pollers()) poller->set_meanwhile({});
  leave_all(cluster, trainers);
}

TEST_F(Jobs, DoNotWaitLongForWhatIsNotSubmittedBeforeADisagreement) {
  const Trainers trainers = cluster_.join_all("job", 1 << 20);
  for (const auto& trainer : trainers) {
    for (unsigned i = 0; i < (trainer->rank() == 2 ? 1 : 3); ++i) {
      Collective one;
      one.offset += i * 65'536;
      one.count = i == 2 && trainer->rank() == 1 ? 4'000 : 5'000;
      fill_and_submit(*trainer, one);
    }
  }
  const auto all_are_idle = [&] { return all_idle(trainers); };
  EXPECT_FALSE(cluster_.run_until(all_are_idle, 2 * kSecond));
  EXPECT_TRUE(cluster_.run_until(all_are_idle, kSecond));
  for (const auto& trainer : trainers) {
    const std::vector<std::int32_t> all{0, GRADCUBE_EMISMATCH, GRADCUBE_EMISMATCH};
    const auto some = std::vector<std::int32_t>(all.begin(), all.begin() + 1);
    EXPECT_EQ(codes(*trainer), trainer->rank() == 2 ? some : all);
  }
  for (unsigned i = 0; i < 2; ++i) fill_and_submit(*trainers[2], collective_);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  EXPECT_EQ(codes(*trainers[2]), std::vector<std::int32_t>(2, GRADCUBE_EMISMATCH));
  for (const auto& trainer : trainers) fill_and_submit(*trainer, collective_);
  EXPECT_TRUE(cluster_.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster_, trainers, collective_);
  leave_all(cluster_, trainers);
}

TEST_F(Jobs, TellALateTrainerWhyTheFirstResetFailedWhatItSubmits) {
  const Trainers trainers = join();
  allreduce(cluster_, trainers, collective_);
  Collective other = collective_;
  other.count -= 1;
  for (const unsigned rank : {0U, 1U, 2U}) {
    fill_and_submit(*trainers[rank], rank == 1 ? other : collective_);
  }
  const auto have_ended = [&](std::uint64_t collectives) {
    return trainers[0]->header().completion_tail.load() == collectives;
  };
  EXPECT_TRUE(cluster_.run_until([&] { return have_ended(2); }, kSecond));
  cluster_.leave(*trainers[1], dataplane::Departure::orderly);
  cluster_.run_for(kMillisecond);
  fill_and_submit(*trainers[0], collective_);
  EXPECT_TRUE(cluster_.run_until([&] { return have_ended(3); }, 4 * kSecond));
  EXPECT_EQ(codes(*trainers[0]), (std::vector<std::int32_t>{GRADCUBE_EMISMATCH, GRADCUBE_EPEER}));
  for (unsigned i = 0; i < 2; ++i) fill_and_submit(*trainers[3], collective_);
  EXPECT_TRUE(cluster_.run_until([&] { return trainers[3]->idle(); }, kSecond));
  const auto ended = trainers[3]->take_completions();
  const auto& told = cluster_.told(*trainers[3]);
  ASSERT_EQ(ended.size(), 2u);
  ASSERT_EQ(told.size(), 2u);
  for (const unsigned i : {0U, 1U}) {
    EXPECT_EQ(ended[i].code, i == 0 ? GRADCUBE_EMISMATCH : GRADCUBE_EPEER);
    EXPECT_EQ(ended[i].notice, told[i].notice.number);
    EXPECT_EQ(ended[i].code, told[i].notice.code) << told[i].notice.text;
  }
  leave_all(cluster_, trainers);
}

TEST(JobsOfTwoLanes, GoOnInOneLaneWhileATrainerIsAwaitedInTheOther) {
  SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}}));
  const Trainers trainers = join_with_lanes(cluster, 2);
  const auto submit = [&](unsigned rank, unsigned place, unsigned lane, std::uint64_t count) {
    Collective one;
    one.offset += place * 65'536;
    one.lane = lane;
    one.count = count;
    fill_and_submit(*trainers[rank], one);
  };
  // They disagree on the third of lane 0, and server 2 has submitted only the first of it.
  for (const unsigned rank : {0U, 1U, 3U}) {
    for (unsigned i = 0; i < 3; ++i) submit(rank, i, 0, i == 2 && rank == 1 ? 4'000 : 5'000);
  }
  submit(2, 0, 0, 5'000);
  cluster.run_for(100 * kMillisecond);
  for (unsigned rank = 0; rank < 4; ++rank) submit(rank, 3, 1, 5'000);
  cluster.run_for(100 * kMillisecond);
  for (const auto& trainer : trainers) {
    const auto ended = trainer->take_completions();
    ASSERT_EQ(ended.size(), 2u) << "one of each lane";
    EXPECT_EQ(ended[1].code, 0);
  }
  for (unsigned i = 1; i < 3; ++i) submit(2, i, 0, 5'000);
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  for (const auto& trainer : trainers) {
    const auto ended = trainer->take_completions();
    ASSERT_EQ(ended.size(), 2u);
    EXPECT_EQ(ended[0].code, 0);
    EXPECT_EQ(ended[1].code, GRADCUBE_EMISMATCH);
  }
  leave_all(cluster, trainers);
}

TEST(JobsOfTwoLanes, CompleteOnEveryTrainerWhatWasAgreedBeforeADisagreement) {
  for (const char* loss : {"0", "0.05"}) {
    SimulatedCluster cluster(settings_of({{"topology", "bcube:2,2"}, {"loss", loss}}));
    const Trainers trainers = join_with_lanes(cluster, 2);
    // Three in each lane; they disagree on the second one of lane 0.
    for (const auto& trainer : trainers) {
      for (unsigned i = 0; i < 6; ++i) {
        Collective one;
        one.offset += i * 65'536;
        one.lane = i % 2;
        one.count = i == 2 && trainer->rank() == 3 ? 4'000 : 12'000;
        fill_and_submit(*trainer, one);
      }
    }
    EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
    for (const auto& trainer : trainers) {
      std::array<std::int32_t, 7> code{};
      for (const auto& completion : trainer->take_completions()) {
        code[completion.request] = completion.code;
      }
      EXPECT_EQ(code, (std::array<std::int32_t, 7>{0, 0, 0, GRADCUBE_EMISMATCH, 0,
                                                   GRADCUBE_EMISMATCH, 0}))
          << "at server " << trainer->rank() << ", loss " << loss;
    }
    allreduce(cluster, trainers, Collective{.count = 5'003});
    leave_all(cluster, trainers);
  }
}

// It takes 50 s on these links.
TEST(JobsOfTwoLanes, WaitForWhatIsOnItsWayInOneLaneBeforeTheyFailWhatCannotBeDoneInTheOther) {
  for (const bool overflows : {false, true}) {
    SimulatedCluster cluster(settings_of({{"topology", "star:3"}, {"rate", "1mbit"}}));
    const Trainers trainers = join_with_lanes(cluster, 2, 1 << 23);
    const Collective large{.offset = shared::kHeapOffset + 65'536, .count = 1'500'000, .lane = 1};
    for (const auto& trainer : trainers) {
      Collective small{.count = overflows || trainer->rank() != 1 ? 500U : 400U};
      if (overflows) {
        small.dtype = aggregation::DataType::int32;
        small.operation = aggregation::Operation::average;
        small.overflows = true;
      }
      fill_and_submit(*trainer, large);
      fill_and_submit(*trainer, small);
    }
    const auto all_have_ended = [&] { return all_idle(trainers); };
    EXPECT_FALSE(cluster.run_until(all_have_ended, 30 * kSecond));
    EXPECT_TRUE(cluster.run_until(all_have_ended, 100 * kSecond));
    const Expected expected = expected_result(cluster.plan(), {}, large, 0);
    for (const auto& trainer : trainers) {
      std::array<std::int32_t, 3> code{};
      for (const auto& completion : trainer->take_completions()) {
        code[completion.request] = completion.code;
      }
      EXPECT_EQ(code, (std::array<std::int32_t, 3>{
                          0, 0, overflows ? GRADCUBE_EOVERFLOW : GRADCUBE_EMISMATCH}));
      EXPECT_EQ(wrong_elements(*trainer, large, expected), 0u);
    }
    allreduce(cluster, trainers, Collective{.count = 500});
    leave_all(cluster, trainers);
  }
}

}  // namespace
}  // namespace gradcube::simulation
