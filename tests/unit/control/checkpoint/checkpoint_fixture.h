// A folder, and small checkpoints in it.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/checkpoint/checkpoint_reader.h"
#include "control/checkpoint/checkpoint_writer.h"
#include "control/checkpoint/optimizer_settings.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {

class Checkpoint : public testing::Test {
 protected:
  Checkpoint() {
    std::string name = (std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
    path_ = (root_ / "model.hub").string();
  }
  ~Checkpoint() override {
    std::filesystem::permissions(root_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(root_);
  }

  // Two keys; all of the one, and two ranges of the other.
  static CheckpointHeader header() {
    return {.settings = parse_optimizer("adamw:lr=0.5,clip=3", "optimizer"),
            .step = 1234567890123,
            .part = 2,
            .parts = 9,
            .keys = {{"bias", 3, aggregation::DataType::float16},
                     {"weight", 1000, aggregation::DataType::float32}},
            .steps = {7, 1234567890123},
            .ranges = {{0, 0, 3}, {1, 0, 5}, {1, 990, 10}}};
  }

  // Element i of array a of range r.
  static std::vector<float> array(const CheckpointHeader& of, std::size_t r, std::size_t a) {
    std::vector<float> values(of.ranges[r].elements);
    std::iota(values.begin(), values.end(), static_cast<float>(1000 * r + 100 * a) - 0.25F);
    return values;
  }

  static void write_arrays(CheckpointWriter& writer, const CheckpointHeader& of) {
    for (std::size_t r = 0; r < of.ranges.size(); ++r) {
      for (std::size_t a = 0; a < of.arrays(); ++a) writer.write(array(of, r, a));
    }
  }
  // In the place of what is there.
  void write(const CheckpointHeader& of) {
    std::filesystem::remove(path_);
    CheckpointWriter writer(path_, of);
    write_arrays(writer, of);
    writer.commit();
  }

  CheckpointReader reader() { return {open_checkpoint(path_), "checkpoint"}; }

  std::vector<std::uint8_t> content() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void set_content(const std::vector<std::uint8_t>& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  // Why the file is refused; empty if it is not.
  std::string refusal() {
    return message_of<UsageError>([&] { reader().check_rest(); });
  }

  std::size_t files() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

  std::filesystem::path root_;
  std::string path_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_CHECKPOINT_CHECKPOINT_FIXTURE_H_
