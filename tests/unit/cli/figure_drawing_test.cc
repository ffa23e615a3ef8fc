// What happens when python3 does not end in time. What it draws is tested in figure_test.py.
#include "cli/figure_drawing.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

TEST(FigureDrawing, EndsPythonWhenItTakesTooLong) {
  const auto path = std::filesystem::temp_directory_path() / "gradcube-never-drawn.svg";
  try {
    draw_figure({}, path, std::chrono::milliseconds(0));
    ADD_FAILURE() << "it was drawn";
  } catch (const control::SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("python3 had not written"));
    EXPECT_THAT(error.what(), testing::EndsWith("after 0 s"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace gradcube::cli
