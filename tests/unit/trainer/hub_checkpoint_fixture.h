// Checkpoints of a hub at a fake daemon, in a folder of the test's own.
#ifndef GRADCUBE_TESTS_UNIT_TRAINER_HUB_CHECKPOINT_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_TRAINER_HUB_CHECKPOINT_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/trainer/hub_fixture.h"

namespace gradcube::trainer {

namespace fs = std::filesystem;

inline void expect_says(const char* message, const char* part) {
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

  // But for the number of the run, and the checksum over it.
  static std::vector<char> without_run(const std::string& path) {
    std::vector<char> bytes = bytes_of(path);
    std::fill_n(bytes.begin() + 16, 8, 0);
    std::fill_n(bytes.begin() + 136, 8, 0);
    return bytes;
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
    init(session, hub, 2);
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

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TESTS_UNIT_TRAINER_HUB_CHECKPOINT_FIXTURE_H_
