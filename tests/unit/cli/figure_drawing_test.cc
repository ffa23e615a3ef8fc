// What happens when python3 does not end in time. What it draws is tested in figure_test.py.
#include "cli/model/figure_drawing.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::model::Figure;
using control::model::Panel;
using control::model::Series;

// Nobody reads from the file, so python3 would wait for ever: this ends only as it is killed.
TEST(FigureDrawing, EndsPythonWhenItTakesTooLong) {
  std::string directory = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const fs::path path = fs::path(directory) / "figure.svg";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Panel panel;
  panel.series = {Series{.name = "a line", .x = {1, 2}, .y = {1, 2}}};
  const Figure figure{.name = "test", .title = "a test", .panels = {panel}};
  try {
    draw_figure(figure, path, std::chrono::milliseconds(0));
    ADD_FAILURE() << "it was drawn";
  } catch (const control::SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("python3 had not written"));
    EXPECT_THAT(error.what(), testing::EndsWith("after 0 s"));
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace gradcube::cli
