// `gradcube checkpoint`. What is refused, and why, is tested in tests/unit/control/checkpoint/.
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/checkpoint/checkpoint_writer.h"
#include "control/checkpoint/optimizer_settings.h"
#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

class CheckpointCommand : public CommandLine {
 protected:
  std::string written() {
    const std::string path = (root_ / "model.hub").string();
    const control::CheckpointHeader header = {
        .settings = control::parse_optimizer("nesterov:lr=0.1", "optimizer"),
        .step = 1000,
        .keys = {{"bias", 10, aggregation::DataType::float16},
                 {"weight\n", 2000, aggregation::DataType::float32}},
        .steps = {1000, 4},
        .ranges = {{0, 0, 10}, {1, 100, 1500}}};
    control::CheckpointWriter writer(path, header);
    for (const auto& range : header.ranges) {
      for (std::size_t a = 0; a < header.arrays(); ++a) {
        writer.write(std::vector<float>(range.elements, 1.5F));
      }
    }
    writer.commit();
    return path;
  }
};

TEST_F(CheckpointCommand, ShowsWhatIsInAFileThatIsWhole) {
  const Outcome outcome = gradcube({"checkpoint", written()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "nesterov:lr=0.1,momentum=0.9,weight-decay=0 after step 1,000, part 1 of 1, 12.4 KB: "
            "every checksum is right\n\n"
            "key       dtype    elements   here  steps\n"
            "bias      float16        10     10  1,000\n"
            "weight\\n  float32     2,000  1,500      4\n");
}

TEST_F(CheckpointCommand, PrintsOneJsonObject) {
  const Outcome outcome = gradcube({"checkpoint", written(), "--json"});
  const auto shown = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(shown["step"], 1000);
  EXPECT_EQ(shown["optimizer"], "nesterov:lr=0.1,momentum=0.9,weight-decay=0");
  EXPECT_EQ(shown["parts"], 1);
  EXPECT_EQ(shown["keys"][1],
            nlohmann::json::parse(R"({"name":"weight\n","elements":2000,"dtype":"float32",)"
                                  R"("elements_here":1500,"steps":4})"));
}

TEST_F(CheckpointCommand, RefusesAFileThatIsDamagedOrNone) {
  const std::string path = written();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_usage_error({"checkpoint", path}, "checkpoint \"" + path + "\": it ends after ");
  std::ofstream(path) << "{}";
  expect_usage_error({"checkpoint", path}, "it is no checkpoint of a hub");
  expect_usage_error({"checkpoint"}, "file");
  const Outcome missing = gradcube({"checkpoint", "/nowhere"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, testing::HasSubstr("cannot be read: No such file or directory"));
}

}  // namespace
}  // namespace gradcube::cli
