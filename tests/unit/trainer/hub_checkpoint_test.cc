// Checkpoints of a hub: the files, and what comes back from them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "tests/unit/trainer/hub_checkpoint_fixture.h"

namespace gradcube::trainer {
namespace {

TEST_F(HubCheckpoint, ComesBackAsItWasWithWeightsStateAndSteps) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 3);
  ASSERT_EQ(save(hub, path_, 70), GRADCUBE_OK) << gradcube_last_error(session);
  EXPECT_EQ(names(), std::set<std::string>{"model.hub.70.8-of-9"});
  ASSERT_EQ(free(hub), GRADCUBE_OK);

  gradcube_session* other = open("other");
  hub = create(other);
  ASSERT_NE(hub, nullptr);
  std::uint64_t step = 0;
  ASSERT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_OK)
      << gradcube_last_error(other);
  EXPECT_EQ(step, 70U);
  std::vector<float> weights(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_OK);
  EXPECT_EQ(weights, std::vector<float>(100, 1.5F));
  // Written again it is the same file but for the run: the state and the steps are the same, too.
  const std::string again = (folder_ / "again.hub").string();
  ASSERT_EQ(save(hub, again, 70), GRADCUBE_OK);
  EXPECT_EQ(without_run(again + ".70.8-of-9"), without_run(path_ + ".70.8-of-9"));
}

TEST_F(HubCheckpoint, ReplacesTheOneBefore) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  for (const std::uint64_t step : {5, 10, 7}) {
    ASSERT_EQ(save(hub, path_, step), GRADCUBE_OK);
    EXPECT_EQ(names(), std::set<std::string>{"model.hub." + std::to_string(step) + ".8-of-9"});
  }
}

TEST_F(HubCheckpoint, IsWrittenWhileTheTrainingGoesOn) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  const std::vector<char> expected = bytes_of(path_ + ".1.8-of-9");
  const std::string other = (folder_ / "other.hub").string();
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, other.c_str(), 1), GRADCUBE_OK);
  wait(session, push(session, hub, 0, std::vector<float>(100, 9).data()));
  ASSERT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_OK);
  EXPECT_EQ(bytes_of(other + ".1.8-of-9"), expected);
}

TEST_F(HubCheckpoint, IsNotThere) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  std::uint64_t step = 0;
  ASSERT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_OK);
  EXPECT_EQ(step, GRADCUBE_HUB_NO_STEP);
  const std::string nowhere = (folder_ / "none/model.hub").string();
  EXPECT_EQ(gradcube_hub_restore(hub, nowhere.c_str(), kLong, &step), GRADCUBE_ESYSTEM);
  expect_says(gradcube_last_error(session), "No such file");
}

TEST_F(HubCheckpoint, OfAnotherModelOrOptimizerIsRefused) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  std::uint64_t step = 0;
  const auto refusal = [&](const char* job) {
    gradcube_session* other = open(job);
    gradcube_hub* its = create(other);
    EXPECT_EQ(gradcube_hub_restore(its, path_.c_str(), kLong, &step), GRADCUBE_EINVAL);
    return std::string(gradcube_last_error(other));
  };
  settings_.optimizer = "momentum";
  expect_says(refusal("momentum").c_str(), "adam");
  settings_.optimizer = "adam";
  keys_[0].elements = 99;
  expect_says(refusal("shorter").c_str(), "weight");
}

TEST_F(HubCheckpoint, OfTheSameOptimizerWithOtherNumbersIsRestored) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  settings_.optimizer = "adam:lr=0.5,beta1=0.5";
  gradcube_session* later = open("later");
  gradcube_hub* its = create(later);
  std::uint64_t step = 0;
  ASSERT_EQ(gradcube_hub_restore(its, path_.c_str(), kLong, &step), GRADCUBE_OK);
  EXPECT_EQ(step, 1U);
}

TEST_F(HubCheckpoint, ThatIsDamagedIsRefusedAndChangesNothing) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 2);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  std::fstream file(path_ + ".1.8-of-9", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-100, std::ios::end);
  file.put('x');
  file.close();
  std::uint64_t step = 0;
  EXPECT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_EINVAL);
  expect_says(gradcube_last_error(session), "checksum");
  std::vector<float> weights(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_OK);
  EXPECT_EQ(weights, std::vector<float>(100, 1));
}

TEST_F(HubCheckpoint, ThatCannotBeWrittenLeavesTheOneBefore) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  const std::string nowhere = (folder_ / "none/model.hub").string();
  EXPECT_EQ(save(hub, nowhere, 2), GRADCUBE_ESYSTEM);
  expect_says(gradcube_last_error(session), "No such file");
  EXPECT_EQ(names(), std::set<std::string>{"model.hub.1.8-of-9"});
  EXPECT_EQ(save(hub, path_, 2), GRADCUBE_OK) << "and the next one is made";
}

TEST_F(HubCheckpoint, ThatIsLongerThanFilesMayBeIsAnError) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little = {100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const int code = save(hub, path_, 1);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(code, GRADCUBE_ESYSTEM);
  expect_says(gradcube_last_error(session), "File too large");
  EXPECT_EQ(names(), std::set<std::string>());
  EXPECT_EQ(save(hub, path_, 1), GRADCUBE_OK);
}

TEST_F(HubCheckpoint, OfWhichThePlanesCannotBeHadLeavesAHubThatCanBeFreed) {
  gradcube_session* session = open("planeless");
  settings_.aggregator = 7;
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  for (const std::size_t key : {0, 1, 2}) init(session, hub, key);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_EPEER);
  std::vector<float> weights(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_weights(hub, 0), nullptr);
  EXPECT_EQ(free(hub), GRADCUBE_OK) << gradcube_last_error(session);
}

TEST_F(HubCheckpoint, ThatIsRestoredInPartLeavesAHubThatIsNeitherReadNorSaved) {
  gradcube_session* session = open("restoreless");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  wait(session, push(session, hub, 0, std::vector<float>(100, 0.5F).data()));
  const auto* shown = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(shown, nullptr);
  std::uint64_t step = 0;
  EXPECT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, &step), GRADCUBE_EPEER);
  EXPECT_FALSE(can_be_read(shown));
  std::vector<float> weights(100);
  EXPECT_EQ(gradcube_hub_pull(hub, 0, weights.data()), GRADCUBE_EINVAL);
  expect_says(gradcube_last_error(session), "not saved or restored as a whole");
  EXPECT_EQ(save(hub, path_, 2), GRADCUBE_EINVAL);
  EXPECT_EQ(free(hub), GRADCUBE_OK) << gradcube_last_error(session);
}

TEST_F(HubCheckpoint, OfWhichThePlanesCannotBeHadLeavesNothingInPlaceOfWhatWasShown) {
  gradcube_session* session = open("planeless");
  settings_.aggregator = 7;
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  for (const std::size_t key : {0, 1, 2}) init(session, hub, key);
  const auto* shown = static_cast<const float*>(gradcube_hub_weights(hub, 0));
  ASSERT_NE(shown, nullptr);
  EXPECT_EQ(shown[99], 1.5F);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_EPEER);
  EXPECT_FALSE(can_be_read(shown));
  gradcube_leave(session);
  EXPECT_FALSE(can_be_read(shown)) << "nor is that kept";
}

TEST_F(HubCheckpoint, KeepsItsHubWhileAnotherThreadEndsIt) {
  gradcube_session* session = open("unheard");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_OK);
  std::jthread ending([&] { EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_OK); });
  ASSERT_TRUE(eventually([&] {
    return is_collective(daemon_.heard().submission, shared::CollectiveKind::all_gather);
  }));
  EXPECT_EQ(free(hub), GRADCUBE_EAGAIN);
  expect_says(gradcube_last_error(session), "another thread");
  daemon_.release();
  ending.join();
  EXPECT_EQ(free(hub), GRADCUBE_OK);
}

TEST_F(HubCheckpoint, HasItsOrder) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_EINVAL);
  expect_says(gradcube_last_error(session), "has no weights");
  for (const std::size_t key : {0, 1, 2}) init(session, hub, key);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, nullptr, 1), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, "", 1), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, "/tmp/", 1), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), UINT64_MAX), GRADCUBE_EINVAL);
  EXPECT_EQ(gradcube_hub_restore(hub, path_.c_str(), kLong, nullptr), GRADCUBE_EINVAL);
  const std::uint64_t request = push(session, hub, 0, std::vector<float>(100).data());
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_EAGAIN);
  wait(session, request);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_OK);
  EXPECT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 2), GRADCUBE_EAGAIN);
  EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_OK);
}

}  // namespace
}  // namespace gradcube::trainer
