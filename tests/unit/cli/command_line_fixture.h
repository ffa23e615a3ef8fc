// Runs the tool itself as a process, as its user does. A test has a directory of its own, in which
// the run directory would be.
#ifndef GRADCUBE_TESTS_UNIT_CLI_COMMAND_LINE_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_CLI_COMMAND_LINE_FIXTURE_H_

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace gradcube::cli {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    std::string name = (std::filesystem::temp_directory_path() / "gradcube-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~CommandLine() override { std::filesystem::remove_all(root_); }

  // `output`: where standard output goes; by default a file of the test's own.
  Outcome gradcube(const std::vector<std::string>& arguments, const char* output = nullptr) {
    const std::string tool =
        std::getenv("GRADCUBE_TOOL") != nullptr ? std::getenv("GRADCUBE_TOOL") : "gradcube";
    std::vector<const char*> argv = {tool.c_str()};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    argv.push_back(nullptr);
    const std::filesystem::path out = root_ / "out", err = root_ / "err";
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("GRADCUBE_RUN", (root_ / "run").c_str(), 1);
      setenv("GRADCUBED", daemon_.c_str(), 1);
      if (!programs_.empty()) {
        setenv("PATH", (programs_ + ":" + std::getenv("PATH")).c_str(), 1);
      }
      dup2(open(output != nullptr ? output : out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
           STDOUT_FILENO);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      execvp(argv[0], const_cast<char* const*>(argv.data()));
      _exit(126);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(out), text_of(err)};
  }

  // Standard output of what succeeds and has nothing to say on standard error.
  std::string output(const std::vector<std::string>& arguments) {
    const Outcome outcome = gradcube(arguments);
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, testing::IsEmpty());
    return outcome.out;
  }

  // One message on standard error, nothing on standard output, nothing started.
  void expect_usage_error(const std::vector<std::string>& arguments, const std::string& what) {
    const Outcome outcome = gradcube(arguments);
    SCOPED_TRACE(testing::PrintToString(arguments));
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.out, testing::IsEmpty());
    EXPECT_THAT(outcome.err,
                testing::AllOf(testing::StartsWith("gradcube: "), testing::HasSubstr(what)));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(root_ / "run")) << "nothing may be left behind";
  }

  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::filesystem::path root_;
  std::string daemon_ = "/nowhere/gradcubed";
  std::string programs_;  // a directory of programs that come before those of $PATH
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_TESTS_UNIT_CLI_COMMAND_LINE_FIXTURE_H_
