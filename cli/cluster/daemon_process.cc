#include "cli/cluster/daemon_process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cli/cluster/comes_true.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/line_channel.h"
#include "cli/text/json_fields.h"
#include "cli/text/package_file.h"
#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/system_error.h"
#include "control/settings/ask_daemons.h"

namespace gradcube::cli {
namespace {

namespace fs = std::filesystem;
using control::RunDirectory;
using control::SetupError;

constexpr int kReadyDescriptor = 3;
constexpr std::size_t kLongestLine = 1 << 16;
constexpr std::size_t kLongestLastLine = 300;
constexpr auto kLineSlice = std::chrono::milliseconds(100);
constexpr auto kTermPatience = std::chrono::seconds(2);
constexpr auto kTermPause = std::chrono::milliseconds(10);
constexpr auto kStartPatience = std::chrono::seconds(30);
constexpr auto kPatiencePerDaemon = std::chrono::seconds(1);

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// What the child needs, made before the fork.
struct DaemonChild {
  std::vector<const char*> arguments;
  std::string exec_failure;
  int log;
  int null_device;
  int ready;
  sigset_t signal_mask;
};

[[noreturn]] void become_daemon(const DaemonChild& child) {
  setsid();
  sigprocmask(SIG_SETMASK, &child.signal_mask, nullptr);
  dup2(child.null_device, STDIN_FILENO);
  dup2(child.log, STDOUT_FILENO);
  dup2(child.log, STDERR_FILENO);
  if (child.ready == kReadyDescriptor) {
    fcntl(child.ready, F_SETFD, 0);  // dup2 onto itself would leave close-on-exec set
  } else {
    dup2(child.ready, kReadyDescriptor);
  }
  execv(child.arguments[0], const_cast<char* const*>(child.arguments.data()));
  const ssize_t ignored =
      write(kReadyDescriptor, child.exec_failure.data(), child.exec_failure.size());
  _exit(ignored < 0 ? 126 : 127);
}

// Whether the child ends by itself soon; then with what status.
bool ends_soon(pid_t pid, int* status) {
  return comes_true(kTermPatience, kTermPause, [&] { return waitpid(pid, status, WNOHANG) != 0; });
}

void end_child(pid_t pid) {
  int status = 0;
  kill(pid, SIGTERM);
  if (ends_soon(pid, &status)) return;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
}

std::string with_log(std::string said, const RunDirectory& directory, const DaemonStart& start) {
  if (start.is_trial) return said;
  return fmt::format("{}; the daemon's log is {}", said, directory.log_file().string());
}

std::string how_it_ended(pid_t pid, const RunDirectory& directory, const DaemonStart& start) {
  int status = -1;  // no success where waitpid() fails
  if (!ends_soon(pid, &status)) {
    end_child(pid);
    return with_log("the daemon did not tell how its start went, and was ended", directory, start);
  }
  std::string how = WIFSIGNALED(status) ? fmt::format("signal {} ({})", WTERMSIG(status),
                                                      strsignal(WTERMSIG(status)))
                                        : fmt::format("exit code {}", WEXITSTATUS(status));
  // To spare the reader a look.
  std::ifstream log(directory.log_file());
  const std::string text(std::istreambuf_iterator<char>(log), {});
  const std::string_view last = control::last_line(text).substr(0, kLongestLastLine);
  return with_log(fmt::format("the daemon ended at its start with {}{}{}", how,
                              last.empty() ? "" : ", and said last: ", last),
                  directory, start);
}

// Is gone with what is in it when this ends.
class TrialFolder {
 public:
  explicit TrialFolder(const fs::path& near) {
    int error = 0;
    for (const fs::path& where : {near, fs::path("/tmp")}) {
      std::string name = (where / ".trial-XXXXXX").string();
      if (!is_fit(name)) continue;
      if (mkdtemp(name.data()) != nullptr) {
        path_ = name;
        return;
      }
      if (error == 0) error = errno;
    }
    throw SetupError(fmt::format("cannot make a folder in {} to try it in: {}", near.string(),
                                 std::strerror(error)));
  }
  ~TrialFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  static bool is_fit(const fs::path& name) {
    try {
      RunDirectory(name).check_path();
      return true;
    } catch (const SetupError&) {
      return false;
    }
  }

  fs::path path_;
};

pid_t fork_daemon(const RunDirectory& directory, const DaemonStart& start, int ready,
                  const InterruptGuard& interrupt) {
  const Descriptor log = directory.begin_log();
  const Descriptor null_device(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null_device.get() < 0) throw control::system_error("cannot read /dev/null");
  const std::string executable = start.executable.string();
  const std::string run_directory = directory.path().string();
  const std::string ready_text = std::to_string(kReadyDescriptor);
  const std::string parent = std::to_string(getpid());
  const nlohmann::json failure = {
      {"ok", false}, {"error", fmt::format("cannot run {}: is it a program?", executable)}};
  DaemonChild child{
      .arguments = {executable.c_str(), start.servers.c_str(), "--run-dir", run_directory.c_str(),
                    "--settings", start.settings.c_str(), "--ready-fd", ready_text.c_str()},
      .exec_failure = json_text(failure) + "\n",
      .log = log.get(),
      .null_device = null_device.get(),
      .ready = ready,
      .signal_mask = interrupt.old_mask()};
  if (start.is_trial) child.arguments.insert(child.arguments.end(), {"--parent", parent.c_str()});
  child.arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw control::system_error("cannot start a process");
  if (pid == 0) become_daemon(child);
  return pid;
}

LineEnd wait_until_ready(int ready, const DaemonStart& start, std::string* line) {
  const Deadline deadline = std::chrono::steady_clock::now() + start.timeout;
  for (;;) {
    const LineEnd end =
        read_line(ready, std::chrono::steady_clock::now() + kLineSlice, kLongestLine, line);
    if (end != LineEnd::timed_out || InterruptGuard::interrupted() ||
        std::chrono::steady_clock::now() >= deadline) {
      return end;
    }
    if (start.waiting) start.waiting();
  }
}

}  // namespace

fs::path find_daemon() {
  if (const char* chosen = std::getenv("GRADCUBED"); chosen != nullptr && *chosen != '\0') {
    if (is_executable(chosen)) return fs::absolute(chosen);
    throw SetupError(fmt::format("GRADCUBED names {}, which is not a program", chosen));
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path : {here / "gradcubed", here / "../dataplane/daemon/gradcubed"}) {
    if (is_executable(path)) return fs::canonical(path);
  }
  const char* const search = std::getenv("PATH");
  for (const std::string_view folder : control::words_of(search != nullptr ? search : "", ":")) {
    const fs::path path = fs::path(folder) / "gradcubed";
    if (is_executable(path)) return path;
  }
  if (error) {
    throw SetupError(
        fmt::format("cannot find gradcubed: /proc/self/exe does not say where this program lies "
                    "({}), and it is "
                    "not in PATH: mount /proc, or name it by the environment variable GRADCUBED",
                    error.message()));
  }
  throw SetupError(fmt::format(
      "cannot find gradcubed beside {} nor in PATH: build it with `ninja -C build`, or name it by "
      "the environment variable GRADCUBED",
      here.string()));
}

std::string setcap_command() {
  constexpr const char* kCapability = "cap_net_raw+ep";
  std::string command = fmt::format("setcap {} {}", kCapability, own_program().string());
  try {
    command += fmt::format(" {} {}", kCapability, find_daemon().string());
  } catch (const SetupError&) {  // other checks say so
  }
  return command;
}

pid_t start_daemon(const RunDirectory& directory, const DaemonStart& start) {
  const InterruptGuard interrupt;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw control::system_error("cannot make a pipe");
  const Descriptor ready(ends[0]);
  Descriptor theirs(ends[1]);
  const pid_t pid = fork_daemon(directory, start, theirs.get(), interrupt);
  theirs.reset();

  std::string line;
  const LineEnd end = wait_until_ready(ready.get(), start, &line);
  if (end == LineEnd::closed) throw SetupError(how_it_ended(pid, directory, start));
  if (end != LineEnd::line || InterruptGuard::interrupted()) {
    end_child(pid);
    if (InterruptGuard::interrupted()) throw SetupError("interrupted: the daemon was ended");
    throw SetupError(with_log(
        fmt::format("the daemon was not ready after {} s and was ended",
                    std::chrono::duration_cast<std::chrono::seconds>(start.timeout).count()),
        directory, start));
  }
  const control::DaemonAnswer answer = control::read_answer(line);
  if (answer.why.empty()) return pid;
  end_child(pid);
  if (answer.usage) throw control::UsageError(answer.why);
  throw SetupError(with_log(answer.why, directory, start));
}

DaemonStart daemon_of(const control::ClusterSettings& settings) {
  const bool embedded = settings.fabric == control::FabricKind::embedded;
  const unsigned daemons = embedded ? 1 : settings.topology.servers();
  return {
      .executable = find_daemon(),
      .servers = embedded ? "--all" : fmt::format("--{}", control::fabric_name(settings.fabric)),
      .settings = control::to_json(settings).dump(),
      .timeout = kStartPatience + kPatiencePerDaemon * daemons};
}

void try_daemon(const fs::path& near, DaemonStart start,
                const std::function<void(const RunDirectory&)>& then) {
  const TrialFolder folder(near);
  const RunDirectory directory(folder.path());
  start.is_trial = true;
  const pid_t daemon = start_daemon(directory, start);
  then(directory);
  end_child(daemon);
}

}  // namespace gradcube::cli
