// Which checkpoint counts where several servers, steps and runs share a path, whoever fails when.

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/scarce_memory.h"
#include "tests/unit/trainer/hub_checkpoint_fixture.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/hub/hub_parts.h"

namespace gradcube::trainer {
namespace {

TEST_F(HubCheckpoint, ThatIsNotPreparedByAllIsNone) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 2), GRADCUBE_OK);
  daemon_.kill();
  EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_ENODAEMON);
  EXPECT_EQ(names(), std::set<std::string>{"model.hub.1.8-of-9"});
}

// Another trainer may have heard that all are prepared, and have removed its part of the one
// before.
TEST_F(HubCheckpoint, WhoseEndNobodyToldLeavesBoth) {
  gradcube_session* session = open("unprepared");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 2), GRADCUBE_OK);
  std::jthread ending(
      [&] { EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_ENODAEMON); });
  const std::set<std::string> both = {"model.hub.1.8-of-9", "model.hub.2.8-of-9.prepared"};
  EXPECT_TRUE(eventually([&] { return names() == both; }));
  daemon_.kill();
  ending.join();
  EXPECT_EQ(names(), both);
}

// At whatever moment another server fails: before it is prepared, when it is, and when it counts.
TEST_F(HubCheckpoint, OfAStepThatIsSavedLeavesThatOneWhereItFails) {
  for (const int moment : {4, 5}) {
    gradcube_session* session = open(("dissent-" + std::to_string(moment)).c_str());
    gradcube_hub* hub = create(session);
    ASSERT_NE(hub, nullptr);
    train(session, hub, 1);
    ASSERT_EQ(save(hub, path_, 5), GRADCUBE_OK);
    const std::vector<char> first = bytes_of(path_ + ".5.8-of-9");
    wait(session, push(session, hub, 0, std::vector<float>(100, 9).data()));
    EXPECT_EQ(save(hub, path_, 5), GRADCUBE_ESYSTEM);
    expect_says(gradcube_last_error(session), "rank 0 could not");
    EXPECT_EQ(names(), std::set<std::string>{"model.hub.5.8-of-9"});
    EXPECT_EQ(bytes_of(path_ + ".5.8-of-9"), first);
    EXPECT_EQ(save(hub, path_, 5), GRADCUBE_OK) << "and the next one takes its place";
    EXPECT_EQ(names(), std::set<std::string>{"model.hub.5.g1.8-of-9"});
    ASSERT_EQ(free(hub), GRADCUBE_OK);
    fs::remove(path_ + ".5.g1.8-of-9");
  }
}

TEST_F(HubCheckpoint, ThatAllHavePreparedCounts) {
  gradcube_session* session = open("dissent-6");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  EXPECT_EQ(save(hub, path_, 2), GRADCUBE_ESYSTEM);
  expect_says(gradcube_last_error(session), "is whole");
  EXPECT_EQ(names(), (std::set<std::string>{"model.hub.1.8-of-9", "model.hub.2.8-of-9"}));
}

TEST_F(HubCheckpoint, RemovesNoneThatAnotherRunHasSaved) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 5000), GRADCUBE_OK);
  ASSERT_EQ(free(hub), GRADCUBE_OK);
  gradcube_session* other = open("other");
  hub = create(other);
  ASSERT_NE(hub, nullptr);
  train(other, hub, 1);
  ASSERT_EQ(save(hub, path_, 10), GRADCUBE_OK);
  ASSERT_EQ(save(hub, path_, 20), GRADCUBE_OK);
  EXPECT_EQ(names(), (std::set<std::string>{"model.hub.20.8-of-9", "model.hub.5000.8-of-9"}));
  std::uint64_t step = 0;
  ASSERT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_OK);
  EXPECT_EQ(step, 5000U);
  ASSERT_EQ(save(hub, path_, 5001), GRADCUBE_OK);
  EXPECT_EQ(names(), (std::set<std::string>{"model.hub.20.8-of-9", "model.hub.5001.8-of-9"}))
      << "what it went on from is replaced";
}

// Somebody has cleaned the folder, or turned a link to another one, while the first run lives.
TEST_F(HubCheckpoint, RemovesNoneThatAnotherRunHasSavedUnderTheNameOfItsOwn) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  fs::remove(path_ + ".1.8-of-9");
  gradcube_session* other = open("other");
  gradcube_hub* its = create(other);
  ASSERT_NE(its, nullptr);
  train(other, its, 2);
  ASSERT_EQ(save(its, path_, 1), GRADCUBE_OK);
  const std::vector<char> saved = bytes_of(path_ + ".1.8-of-9");
  ASSERT_EQ(save(hub, path_, 2), GRADCUBE_OK);
  EXPECT_EQ(names(), (std::set<std::string>{"model.hub.1.8-of-9", "model.hub.2.8-of-9"}));
  EXPECT_EQ(bytes_of(path_ + ".1.8-of-9"), saved);
}

// A run that lives may be about to publish it.
TEST_F(HubCheckpoint, RemovesNoPreparedFileOfAnotherRun) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 3), GRADCUBE_OK);
  ASSERT_EQ(free(hub), GRADCUBE_OK);
  const std::string prepared = "model.hub.3.8-of-9.prepared";
  fs::rename(path_ + ".3.8-of-9", folder_ / prepared);
  gradcube_session* other = open("other");
  hub = create(other);
  ASSERT_NE(hub, nullptr);
  train(other, hub, 1);
  ASSERT_EQ(save(hub, path_, 3), GRADCUBE_OK);
  EXPECT_EQ(names(), (std::set<std::string>{prepared, "model.hub.3.g1.8-of-9"}));
}

TEST_F(HubCheckpoint, OfWhichThereIsNoFileIsNotTakenByAServerThatOwnsNothing) {
  const Hub owns_nothing(settings_, 1);
  try {
    const HubParts parts(owns_nothing, path_, {{5, 0}, 0, 1});
    FAIL() << "it has taken none for all";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), GRADCUBE_ESYSTEM);
    expect_says(failure.what(), "does not see the files of all parts");
  }
}

// Whichever piece of memory is the first that there is not: nobody knows then whether the others
// have heard that it is prepared.
TEST_F(HubCheckpoint, StaysOncePreparedWhereverMemoryRunsOut) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  for (std::uint64_t step = 1;; ++step) {
    ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), step), GRADCUBE_OK);
    const std::string file = path_ + "." + std::to_string(step) + ".8-of-9";
    const std::string prepared = file + ".prepared";
    std::uint64_t pieces = 0;
    int code = 0;
    {
      const NoMemory none([&] {
        if (pieces != 0 || fs::exists(prepared)) ++pieces;
        return pieces >= step;
      });
      code = gradcube_hub_end_checkpoint(hub, kLong);
    }
    ASSERT_TRUE(fs::exists(file) || fs::exists(prepared)) << "piece " << step;
    if (code == GRADCUBE_OK) break;
    ASSERT_EQ(code, GRADCUBE_ENOMEM) << "piece " << step;
  }
}

// Two runs that save the same step at one path at once.
class HubCheckpointOfTwoRuns : public HubCheckpoint {
 protected:
  // The other one's file comes when this one has chosen its version.
  void expect_refused_beside(const std::string& name) {
    gradcube_session* session = open("unheard");
    gradcube_hub* hub = create(session);
    ASSERT_NE(hub, nullptr);
    train(session, hub, 1);
    ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_OK);
    std::jthread ending(
        [&] { EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_ESYSTEM); });
    ASSERT_TRUE(eventually([&] {
      return is_collective(daemon_.heard().submission, shared::CollectiveKind::all_gather);
    }));
    std::ofstream(folder_ / name).put('x');
    daemon_.release();
    ending.join();
    EXPECT_EQ(names(), std::set<std::string>{name});
    EXPECT_EQ(bytes_of(folder_ / name), std::vector<char>{'x'});
  }
};

TEST_F(HubCheckpointOfTwoRuns, TakesNoNameThatTheOtherHasPrepared) {
  expect_refused_beside("model.hub.1.8-of-9.prepared");
}

TEST_F(HubCheckpointOfTwoRuns, TakesNoNameThatTheOtherHasPublished) {
  expect_refused_beside("model.hub.1.8-of-9");
}

// One that was interrupted in a call before, say: what it says is about something else.
TEST_F(HubCheckpoint, IsNeitherMadeNorTakenBackByTrainersInDifferentCalls) {
  for (const int gather : {1, 2, 3, 4, 5, 6}) {
    gradcube_session* session = open(("ahead-" + std::to_string(gather)).c_str());
    gradcube_hub* hub = create(session);
    ASSERT_NE(hub, nullptr);
    train(session, hub, 1);
    int code = save(hub, path_, 1);
    std::uint64_t step = 0;
    if (gather > 3) {  // the first are those of a save
      ASSERT_EQ(code, GRADCUBE_OK) << gradcube_last_error(session);
      code = gradcube_hub_restore(hub, path_.c_str(), kLong, &step);
    }
    EXPECT_EQ(code, GRADCUBE_EMISMATCH) << gather;
    expect_says(gradcube_last_error(session), "not in one call: rank 0 has come to another one");
    ASSERT_EQ(free(hub), GRADCUBE_OK);
  }
}

TEST_F(HubCheckpoint, ThatEachTrainerLeavesToAnotherIsNotTakenBack) {
  gradcube_options options = GRADCUBE_OPTIONS_INIT;
  options.trainers_per_server = 2;
  gradcube_session* session = open("job", &options);
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::uint64_t step = 0;
  EXPECT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_EMISMATCH);
  expect_says(gradcube_last_error(session), "each trainer says that another has the files");
}

// What a job has left that died while its first one was written.
TEST_F(HubCheckpoint, ThatNobodyHasPublishedIsNoneUnlessAllArePrepared) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::ofstream(path_ + ".7.1-of-9.prepared").put('x');
  std::ofstream(path_ + ".7.8-of-9.aBcDeF").put('x');
  std::uint64_t step = 0;
  ASSERT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_OK);
  EXPECT_EQ(step, GRADCUBE_HUB_NO_STEP);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 7), GRADCUBE_OK);
  EXPECT_TRUE(names().contains("model.hub.7.g1.8-of-9")) << "of a version of its own";
  fs::rename(path_ + ".7.g1.8-of-9", path_ + ".7.g1.8-of-9.prepared");
  ASSERT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_OK)
      << gradcube_last_error(session);
  EXPECT_EQ(step, 7U);
}

}  // namespace
}  // namespace gradcube::trainer
