#include "cli/launch/launch_process.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FindCommand : public testing::Test {
 protected:
  FindCommand() {
    std::string name = (fs::temp_directory_path() / "gradcube-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
    for (const char* folder : {"first", "second"}) fs::create_directory(root_ / folder);
    search_ = (root_ / "first").string() + ":" + (root_ / "second").string();
  }
  ~FindCommand() override { fs::remove_all(root_); }

  std::string make(const std::string& name, bool runs) const {
    std::ofstream(root_ / name) << "#!/bin/sh\n";
    fs::permissions(root_ / name, runs ? fs::perms::owner_all : fs::perms::owner_read);
    return (root_ / name).string();
  }

  void expect_error(const std::string& word, int code, const std::string& what) const {
    try {
      const std::string found = find_command(word, search_.c_str());
      ADD_FAILURE() << word << " was found: " << found;
    } catch (const CommandError& error) {
      EXPECT_EQ(error.exit_code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  }

  fs::path root_;
  std::string search_;
};

TEST_F(FindCommand, TakesTheFirstOfThatNameThatCanBeRun) {
  const std::string second = make("second/train", true);
  EXPECT_EQ(find_command("train", search_.c_str()), second);
  make("first/train", false);
  EXPECT_EQ(find_command("train", search_.c_str()), second);
  const std::string first = make("first/train", true);
  EXPECT_EQ(find_command("train", search_.c_str()), first);
}

TEST_F(FindCommand, TakesAPathAsItIs) {
  const std::string path = make("train.sh", true);
  EXPECT_EQ(find_command(path, search_.c_str()), path);
  EXPECT_EQ(find_command(path, nullptr), path);
}

TEST_F(FindCommand, LooksWhereAShellDoesWithoutAPath) {
  EXPECT_THAT(find_command("sh", nullptr), HasSubstr("/sh"));
}

TEST_F(FindCommand, SaysThatThereIsNone) {
  expect_error("train", 127, "there is no command \"train\" in PATH");
  expect_error("", 127, "there is no command \"\" in PATH");
  expect_error((root_ / "nothing").string(), 127, "No such file");
}

TEST_F(FindCommand, SaysThatItCannotBeRun) {
  const std::string path = make("second/train", false);
  expect_error("train", 126, path);
  expect_error(path, 126, "Permission denied");
  expect_error(root_.string(), 126, "Is a directory");
}

}  // namespace
}  // namespace gradcube::cli
