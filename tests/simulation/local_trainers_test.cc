// Jobs with several trainers on each server: every kind of collective by every algorithm, what
// becomes of the others when one leaves or disagrees, and who may join.

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

using control::CollectiveKind;

dataplane::TrainerRequest request_of(const std::string& job, std::uint32_t trainers,
                                     const std::string& algorithm = "") {
  dataplane::TrainerRequest request{job, 1000};
  request.heap_bytes = 1 << 18;
  request.options.trainers = trainers;
  request.options.lanes = {{algorithm, 0}};
  return request;
}

// By rank.
Trainers join_all(SimulatedCluster& cluster, const dataplane::TrainerRequest& request) {
  Trainers trainers;
  for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
    for (std::uint32_t local = 0; local < request.options.trainers; ++local) {
      trainers.push_back(cluster.join(server, request));
    }
  }
  cluster.run_until([&] { return trainers.back()->admitted(); }, kSecond);
  return trainers;
}

control::Plan plan_of(const std::string& topology, const std::string& algorithm,
                      std::uint32_t trainers) {
  const auto parsed = control::parse_topology(topology, "test");
  return control::make_plan(
      algorithm, parsed, control::Placement::all(parsed).with_trainers(trainers, "test"), "test");
}

// Ends with the same code at all of these, and fails with it.
void expect_all_fail(SimulatedCluster& cluster, const Trainers& trainers, std::int32_t code) {
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 20 * kSecond));
  for (const auto& trainer : trainers) {
    for (const shared::Completion& completion : trainer->take_completions()) {
      EXPECT_EQ(completion.code, code) << "at rank " << trainer->rank();
    }
  }
}

void run_each_kind(const std::string& topology, const std::string& algorithm,
                   std::uint32_t per_server) {
  SCOPED_TRACE(
      fmt::format("{} on {}, {} trainers on each server", algorithm, topology, per_server));
  SimulatedCluster cluster(settings_of({{"topology", topology}, {"mtu", "1500"}}));
  const control::Topology& links = cluster.plan().topology();
  const control::PlanChoice choice = control::make_choice(
      algorithm, links, control::Placement::all(links).with_trainers(per_server, "test"), "test");
  const Trainers trainers = join_all(cluster, request_of("local", per_server, algorithm));
  const std::uint32_t all = choice.placement().trainers();
  unsigned salt = 0;
  for (const CollectiveKind kind : control::kCollectiveKinds) {
    for (const std::uint64_t count : {0, 1, 7, 1501}) {
      Collective collective;
      collective.kind = kind;
      collective.salt = ++salt;
      collective.dtype = static_cast<aggregation::DataType>(salt % 4);
      collective.operation = salt % 8 >= 4 && control::reduces(kind)
                                 ? aggregation::Operation::average
                                 : aggregation::Operation::sum;
      collective.count = kind == CollectiveKind::barrier ? 0 : count;
      if (control::is_rank_ordered(kind)) collective.count *= all;
      if (control::has_root(kind)) collective.root = salt * 7 % all;
      const control::Plan& plan = choice.plan_of(kind, collective.bytes());
      allreduce(cluster, plan, trainers, collective);
    }
  }
  leave_all(cluster, trainers);
}

TEST(LocalTrainers, RunEveryKindByEveryAlgorithm) {
  for (const std::string& algorithm : control::algorithm_names()) {
    for (const char* topology : {"bcube:2,2", "star:3"}) {
      try {
        plan_of(topology, algorithm, 3);
      } catch (const control::UsageError&) {
        continue;  // it does not fit
      }
      run_each_kind(topology, algorithm, 3);
    }
  }
  run_each_kind("bcube:3x2", "bml", 2);
  run_each_kind("bcube:2,2", "hips:root,ring", 2);
  run_each_kind("star:2", "bml", 16);
}

// What the others have sent of the first two is there before this server takes all three at once.
TEST(LocalTrainers, WhoseSumOverflowsLeaveWhatWasSubmittedBeforeItToEnd) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}}));
  const Trainers trainers = join_all(cluster, request_of("overflow", 2, "recursive_doubling"));
  constexpr std::uint64_t kRoom = 4096;
  constexpr std::uint64_t kCount = 100;
  const auto submit = [&](SimulatedTrainer& trainer, unsigned buffer, std::int64_t value) {
    const std::uint64_t offset = shared::kHeapOffset + buffer * kRoom;
    std::fill_n(reinterpret_cast<std::int64_t*>(trainer.at(offset)), kCount, value);
    trainer.submit(offset, kCount, aggregation::DataType::int64, aggregation::Operation::average);
  };
  for (std::size_t i = 0; i < 4; ++i) {
    for (const unsigned buffer : {0, 1}) submit(*trainers[i], buffer, 7);
  }
  cluster.run_for(5 * kMillisecond);
  for (std::size_t i = 4; i < 6; ++i) {
    for (const unsigned buffer : {0, 1}) submit(*trainers[i], buffer, 7);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    submit(*trainers[i], 2, i < 4 ? 7 : std::numeric_limits<std::int64_t>::max());
  }
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 2 * kSecond));
  for (const auto& trainer : trainers) {
    std::vector<std::int32_t> codes;
    for (const shared::Completion& completion : trainer->take_completions()) {
      codes.push_back(completion.code);
    }
    EXPECT_EQ(codes, (std::vector<std::int32_t>{0, 0, GRADCUBE_EOVERFLOW}));
  }
  leave_all(cluster, trainers);
}

TEST(LocalTrainers, HaveRanksSideBySide) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  dataplane::TrainerRequest request = request_of("ranks", 2);
  const auto any = cluster.join(1, request);
  request.local = 1;
  const auto second = cluster.join(0, request);
  request.local = 0;
  const auto first = cluster.join(0, request);
  request.local.reset();
  const auto other = cluster.join(1, request);
  cluster.run_until([&] { return other->admitted() && first->admitted(); }, kSecond);
  EXPECT_EQ(first->rank(), 0u);
  EXPECT_EQ(second->rank(), 1u);
  EXPECT_EQ(any->rank(), 2u);
  EXPECT_EQ(other->rank(), 3u);
  EXPECT_EQ(other->size(), 4u);
}

TEST(LocalTrainers, WaitForTheLastOfTheirServer) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  const dataplane::TrainerRequest request = request_of("late", 2);
  const auto first = cluster.join(0, request);
  const auto second = cluster.join(0, request);
  const auto third = cluster.join(1, request);
  ASSERT_TRUE(cluster.run_until([&] { return third->admitted(); }, kSecond));
  EXPECT_EQ(cluster.explain(*first, {0, 1}),
            "1 of 4 trainers has not joined job \"late\": server [1] (1 of 2)");
  EXPECT_EQ(cluster.jobs().front().waiting_for, std::vector<bcube::ServerId>{1});
  const auto fourth = cluster.join(1, request);
  ASSERT_TRUE(cluster.run_until([&] { return fourth->admitted(); }, kSecond));
  Collective collective;
  collective.count = 100;
  for (SimulatedTrainer* each : {first.get(), second.get(), third.get()}) {
    fill_and_submit(*each, collective);
  }
  cluster.run_for(50 * kMillisecond);
  EXPECT_EQ(first->in_flight(), 1u);
  EXPECT_EQ(cluster.explain(*first, {0, 1}),
            "collective 1 of job \"late\" waits for trainers that have not submitted it: [1] (pid "
            "1000)");
  fill_and_submit(*fourth, collective);
  EXPECT_TRUE(
      cluster.run_until([&] { return first->header().completion_tail.load() == 1; }, kSecond));
}

TEST(LocalTrainers, AreToldWhichOfThemSubmittedSomethingElse) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  const Trainers trainers = join_all(cluster, request_of("mixed", 2));
  Collective collective;
  collective.count = 1000;
  Collective other = collective;
  other.count = 900;
  for (const auto& trainer : trainers) {
    fill_and_submit(*trainer, trainer->rank() == 3 ? other : collective);
    fill_and_submit(*trainer, collective);
  }
  expect_all_fail(cluster, trainers, GRADCUBE_EMISMATCH);
  const std::string text = cluster.told(*trainers[0]).back().notice.text;
  EXPECT_NE(text.find("[1] submitted trainer 0: all-reduce of 1000 float32 sum, trainer 1: "
                      "all-reduce of 900 float32 sum"),
            std::string::npos)
      << text;
  allreduce(cluster, plan_of("star:2", "bml", 2), trainers, collective);
}

// What one of a server's trainers is ahead of the others fails, too.
TEST(LocalTrainers, FailAlikeHoweverFarTheyHaveCome) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  const Trainers trainers = join_all(cluster, request_of("ahead", 2));
  Collective collective;
  collective.count = 10;
  Collective other = collective;
  other.dtype = aggregation::DataType::int32;
  for (const auto& trainer : trainers) {
    fill_and_submit(*trainer, trainer->rank() == 1 ? other : collective);
  }
  for (unsigned i = 0; i < 5; ++i) fill_and_submit(*trainers[2], collective);
  expect_all_fail(cluster, trainers, GRADCUBE_EMISMATCH);
  for (unsigned i = 0; i < 5; ++i) {
    for (const auto& trainer : trainers) {
      if (trainer->rank() != 2) fill_and_submit(*trainer, collective);
    }
  }
  expect_all_fail(cluster, trainers, GRADCUBE_EMISMATCH);
  allreduce(cluster, plan_of("star:2", "bml", 2), trainers, collective);
}

TEST(LocalTrainers, LearnWhichOfThemHasGone) {
  for (const auto departure : {dataplane::Departure::orderly, dataplane::Departure::death,
                               dataplane::Departure::violation}) {
    SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
    Trainers trainers = join_all(cluster, request_of("gone", 2));
    Collective collective;
    collective.count = 10;
    allreduce(cluster, plan_of("star:2", "bml", 2), trainers, collective);
    const auto gone = std::move(trainers[1]);
    trainers.erase(trainers.begin() + 1);
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
    cluster.leave(*gone, departure);
    expect_all_fail(cluster, trainers, GRADCUBE_EPEER);
    for (const auto& trainer : trainers) {
      const std::string text = cluster.told(*trainer).back().notice.text;
      EXPECT_NE(text.find("trainer 1 of job \"gone\" on server [0] (pid 1000)"), std::string::npos)
          << text;
      fill_and_submit(*trainer, collective);
    }
    expect_all_fail(cluster, trainers, GRADCUBE_EPEER);
    leave_all(cluster, trainers);
    const Trainers anew = join_all(cluster, request_of("gone", 2));
    allreduce(cluster, plan_of("star:2", "bml", 2), anew, collective);
    leave_all(cluster, anew);
  }
}

TEST(LocalTrainers, AreHarmedByACorruptRingAsOthersAre) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  Trainers trainers = join_all(cluster, request_of("corrupt", 3));
  Collective collective;
  collective.count = 10;
  trainers[4]->header().submission_tail.store(1ULL << 40);
  const auto gone = std::move(trainers[4]);
  trainers.erase(trainers.begin() + 4);
  for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
  expect_all_fail(cluster, trainers, GRADCUBE_EPEER);
  // Those of its server, too, are heard as long as they stay.
  for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
  expect_all_fail(cluster, trainers, GRADCUBE_EPEER);
  EXPECT_TRUE(cluster.told(*gone).back().evicted);
  leave_all(cluster, trainers);
}

std::string refusal_of(SimulatedCluster& cluster, bcube::ServerId server,
                       const dataplane::TrainerRequest& request) {
  try {
    cluster.join(server, request);
  } catch (const dataplane::JoinRefused& refused) {
    return refused.what();
  }
  return "taken";
}

TEST(LocalTrainers, AreRefusedWhereTheyDoNotFit) {
  SimulatedCluster cluster(settings_of({{"topology", "star:2"}}));
  dataplane::TrainerRequest request = request_of("full", 2);
  request.local = 1;
  const auto first = cluster.join(0, request);
  EXPECT_EQ(refusal_of(cluster, 0, request),
            "job \"full\" already has a trainer 1 on server [0]: pid 1000");
  request.local = 2;
  EXPECT_NE(refusal_of(cluster, 0, request).find("trainer 2 of its server: expected 0 to 1"),
            std::string::npos);
  request.local.reset();
  request.options.trainers = 3;
  EXPECT_NE(refusal_of(cluster, 0, request)
                .find("2 trainers on each on server [0]; this trainer "
                      "asks for weight 1, lane recursive_doubling, all 2 servers, 3 "
                      "trainers on each"),
            std::string::npos);
  EXPECT_NE(refusal_of(cluster, 1, request).find("3 trainers on each"), std::string::npos);
  request.options.trainers = 1;
  EXPECT_NE(refusal_of(cluster, 0, request).find("2 trainers on each"), std::string::npos);
  request.options.trainers = 17;
  EXPECT_NE(refusal_of(cluster, 1, request).find("17 trainers on each server: expected 1 to 16"),
            std::string::npos);
  request.options.trainers = 2;
  const auto second = cluster.join(0, request);
  EXPECT_EQ(refusal_of(cluster, 0, request),
            "job \"full\" already has its 2 trainers on server [0]");
  request.rank = 4;
  EXPECT_EQ(refusal_of(cluster, 1, request), "job \"full\": rank 4: expected 0 to 3");
  request.rank = 2;
  request.local = 1;
  EXPECT_NE(refusal_of(cluster, 1, request).find("rank 2 is trainer 0 of its server"),
            std::string::npos);
}

}  // namespace
}  // namespace gradcube::simulation
