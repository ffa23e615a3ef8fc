// Checkpoints of a hub: the files, and what comes back from them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/trainer/hub_fixture.h"
#include "trainer/src/checkpoint_files.h"
#include "trainer/src/hub_parts.h"

namespace gradcube::trainer {
namespace {

namespace fs = std::filesystem;
void expect_says(const char* message, const char* part) {
  EXPECT_NE(std::string(message).find(part), std::string::npos) << message;
}

class HubCheckpoint : public HubTest {
 protected:
  HubCheckpoint() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "model.hub").string();
    settings_.optimizer = "adam";
  }
  ~HubCheckpoint() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  static std::vector<char> bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Weights, then so many steps of the first key and one less of the second.
  void train(gradcube_session* session, gradcube_hub* hub, int steps) {
    const std::vector<float> first(100, 1.25F);
    const std::vector<std::uint16_t> second(10, 0x3f80);
    std::uint64_t request = 0;
    ASSERT_EQ(gradcube_hub_init(hub, 0, first.data(), &request), GRADCUBE_OK);
    wait(session, request);
    ASSERT_EQ(gradcube_hub_init(hub, 1, second.data(), &request), GRADCUBE_OK);
    wait(session, request);
    for (int step = 1; step <= steps; ++step) {
      wait(session, push(session, hub, 0, std::vector<float>(100, 0.5F * step).data()));
      if (step < steps) wait(session, push(session, hub, 1, second.data()));
    }
  }
  static int save(gradcube_hub* hub, const std::string& path, std::uint64_t step) {
    const int code = gradcube_hub_begin_checkpoint(hub, path.c_str(), step);
    return code == GRADCUBE_OK ? gradcube_hub_end_checkpoint(hub, kLong) : code;
  }

  fs::path folder_;
  std::string path_;
};

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
  // Written again it is the same file: the state and the steps are the same, too.
  const std::string again = (folder_ / "again.hub").string();
  ASSERT_EQ(save(hub, again, 70), GRADCUBE_OK);
  EXPECT_EQ(bytes_of(again + ".70.8-of-9"), bytes_of(path_ + ".70.8-of-9"));
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

// Another trainer may have heard that all have the new one, and have removed its part of the one
// before.
TEST_F(HubCheckpoint, WhoseEndNobodyToldLeavesBoth) {
  gradcube_session* session = open("job");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(save(hub, path_, 1), GRADCUBE_OK);
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 2), GRADCUBE_OK);
  daemon_.kill();
  EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_ENODAEMON);
  EXPECT_EQ(names(), (std::set<std::string>{"model.hub.1.8-of-9", "model.hub.2.8-of-9"}));
}

TEST_F(HubCheckpoint, KeepsItsHubWhileAnotherThreadEndsIt) {
  gradcube_session* session = open("unheard");
  gradcube_hub* hub = create(session);
  ASSERT_NE(hub, nullptr);
  train(session, hub, 1);
  ASSERT_EQ(gradcube_hub_begin_checkpoint(hub, path_.c_str(), 1), GRADCUBE_OK);
  std::jthread ending([&] { EXPECT_EQ(gradcube_hub_end_checkpoint(hub, kLong), GRADCUBE_OK); });
  ASSERT_TRUE(eventually([&] { return names().contains("model.hub.1.8-of-9"); }));
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

TEST(CheckpointFiles, AreFoundByTheirNames) {
  std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  for (const char* file :
       {"m.hub.10.1-of-2", "m.hub.9.2-of-2", "m.hub.10.3-of-2", "m.hub.10.0-of-2",
        "m.hub.01.1-of-2", "m.hub.10.1-of-2.aBcDeF", "m.hub.10", "m.hub", "n.hub.10.1-of-2",
        "m.hub.-1.1-of-2", "m.hub.99999999999999999999.1-of-2"}) {
    std::ofstream(folder / file).put('x');
  }
  std::vector<CheckpointFile> files = checkpoint_files((folder / "m.hub").string());
  std::sort(files.begin(), files.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.step < b.step; });
  EXPECT_EQ(files, (std::vector<CheckpointFile>{{9, 1, 2}, {10, 0, 2}}));
  fs::remove_all(folder);
}

TEST(CheckpointFiles, ANewestIsOwnOrWhole) {
  std::uint64_t step = 0;
  const CheckpointFile own{0, 1, 3};
  EXPECT_FALSE(find_newest({}, own, step));
  EXPECT_FALSE(find_newest({{5, 0, 3}, {5, 2, 3}}, own, step)) << "parts of others";
  ASSERT_TRUE(find_newest({{5, 0, 3}, {5, 1, 3}, {4, 1, 3}}, own, step));
  EXPECT_EQ(step, 5U);
  ASSERT_TRUE(find_newest({{5, 1, 3}, {8, 1, 2}, {8, 0, 2}, {9, 0, 4}}, own, step));
  EXPECT_EQ(step, 8U) << "all parts of another number";
}

}  // namespace
}  // namespace gradcube::trainer
