#include "cli/launch/launch_process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <sys/prctl.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/system_error.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::Descriptor;
using control::SetupError;

constexpr int kNotRunnable = 126;
constexpr int kNotThere = 127;
constexpr const char* kDefaultSearch = "/bin:/usr/bin";

// 0, or why this file cannot be run.
int refusal(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) return EISDIR;
  return access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string checked(const std::string& file) {
  const int error = refusal(file);
  if (error == 0) return file;
  const bool missing = error == ENOENT || error == ENOTDIR;
  throw CommandError(missing ? kNotThere : kNotRunnable,
                     fmt::format("cannot run {}: {}", control::quoted(file), std::strerror(error)));
}

// The end to read and the end to write, which are closed by execve(). `ours` does not block.
std::pair<Descriptor, Descriptor> make_pipe(int ours = 0) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw SetupError(fmt::format("cannot make a pipe to a process: {}{}", std::strerror(errno),
                                 errno == EMFILE ? "; `ulimit -n` tells how many" : ""));
  }
  std::pair<Descriptor, Descriptor> pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  fcntl(ends[ours], F_SETFL, O_NONBLOCK);
  return pipe;
}

// execve() takes arrays of pointers that end with a null.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

struct Child {
  pid_t parent;
  int input;  // -1: /dev/null
  int output;
  int errors;
  rlimit descriptors;
  char* const* words;
  char* const* environment;
};

[[noreturn]] void become(const LaunchTask& task, const Child& child, const LaunchSignals& signals,
                         const LaunchGuard& guard) {
  setpgid(0, 0);
  // One with an input sees that close, and has others to end before itself.
  if (!task.input) guard.add(getpid());
  if (!task.input && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(kNotThere);
  // A parent that died before prctl() was called sends nothing.
  if (getppid() != child.parent) _exit(kNotThere);
  dup2(child.input >= 0 ? child.input : open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(child.output, STDOUT_FILENO);
  dup2(child.errors, STDERR_FILENO);
  setrlimit(RLIMIT_NOFILE, &child.descriptors);
  signals.restore_in_child();
  execvpe(task.file.c_str(), child.words, child.environment);
  const int error = errno;
  dprintf(STDERR_FILENO, "gradcube: cannot run %s: %s\n", task.file.c_str(), std::strerror(error));
  _exit(error == ENOENT ? kNotThere : kNotRunnable);
}

}  // namespace

std::string find_command(const std::string& word, const char* search) {
  if (word.find('/') != std::string::npos) return checked(word);
  std::string not_runnable;
  const std::string_view folders = search != nullptr ? search : kDefaultSearch;
  for (const std::string_view folder : control::split(folders, ':')) {
    // An empty name is the working directory. With a '/', so that it is not looked for again.
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, word);
    const int error = refusal(file);
    if (error == 0) return file;
    std::error_code hidden;  // a folder that may not be looked into says EACCES, too
    if (error == EACCES && not_runnable.empty() && fs::is_regular_file(file, hidden)) {
      not_runnable = file;
    }
  }
  if (!not_runnable.empty()) return checked(not_runnable);
  const bool is_here = !word.empty() && refusal("./" + word) == 0;
  throw CommandError(kNotThere,
                     fmt::format("there is no command {} in PATH{}", control::quoted(word),
                                 is_here ? fmt::format(" (did you mean ./{}?)", word) : ""));
}

LaunchedProcess launch_process(const LaunchTask& task, const rlimit& descriptors,
                               const LaunchSignals& signals, const LaunchGuard& guard) {
  Descriptor their_input, input;
  if (task.input) std::tie(their_input, input) = make_pipe(1);
  auto [output, their_output] = make_pipe();
  auto [errors, their_errors] = make_pipe();
  const std::vector<char*> words = pointers(task.words);
  const std::vector<char*> variables = pointers(task.environment);
  const Child child{.parent = getpid(),
                    .input = their_input.get(),
                    .output = their_output.get(),
                    .errors = their_errors.get(),
                    .descriptors = descriptors,
                    .words = words.data(),
                    .environment = variables.data()};
  const pid_t pid = fork();
  if (pid < 0) throw control::system_error("cannot start a process");
  if (pid == 0) become(task, child, signals, guard);
  setpgid(pid, pid);  // whoever is first: a signal to the group finds it from now on
  return {.pid = pid,
          .input = std::move(input),
          .output = std::move(output),
          .errors = std::move(errors)};
}

}  // namespace gradcube::cli
