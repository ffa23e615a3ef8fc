#include "dataplane/bed/server_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/bed/network_namespace.h"

namespace gradcube::dataplane {

using control::Descriptor;
using control::RunDirectory;
using control::SetupError;

namespace {

constexpr std::size_t kLongestReport = 1 << 16;
constexpr auto kEndPatience = std::chrono::seconds(1);

[[noreturn]] void throw_system_error(const std::string& what) {
  throw SetupError(fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

Descriptor open_log(const RunDirectory& directory) {
  const std::string path = directory.log_file().string();
  if (rename(path.c_str(), directory.old_log_file().c_str()) != 0 && errno != ENOENT) {
    throw_system_error("rename " + path);
  }
  Descriptor log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (log.get() < 0) throw_system_error("write " + path);
  return log;
}

// What the child uses, all of it made before the fork.
struct Child {
  std::vector<const char*> arguments;
  std::string exec_failure;
  int gate;
  int report;
  int log;
  int null_device;
};

void become_daemon(const Child& child) {
  const NamespaceFailure failure = enter_new_network_namespace();
  if (write(child.gate, &failure, sizeof failure) != sizeof failure || failure.error != 0) return;
  char go = 0;
  if (read(child.gate, &go, 1) != 1) return;
  dup2(child.null_device, STDIN_FILENO);
  dup2(child.log, STDOUT_FILENO);
  dup2(child.log, STDERR_FILENO);
  fcntl(child.report, F_SETFD, 0);
  execv(child.arguments[0], const_cast<char* const*>(child.arguments.data()));
  (void)!write(child.report, child.exec_failure.data(), child.exec_failure.size());
}

ChildProcess start(std::vector<std::string> program, const RunDirectory& directory, int gate,
                   int report) {
  directory.create();
  const Descriptor log = open_log(directory);
  const Descriptor null_device(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null_device.get() < 0) throw_system_error("read /dev/null");
  program.emplace_back("--ready-fd");
  program.push_back(std::to_string(report));
  const nlohmann::json failure = {{"ok", false}, {"error", "cannot run " + program.front()}};
  Child child{.arguments = {},
              .exec_failure = failure.dump() + "\n",
              .gate = gate,
              .report = report,
              .log = log.get(),
              .null_device = null_device.get()};
  for (const std::string& word : program) child.arguments.push_back(word.c_str());
  child.arguments.push_back(nullptr);
  return ChildProcess::start([&] { become_daemon(child); });
}

}  // namespace

// The ends of the gate and of the pipe.
struct ServerProcess::Ends {
  Descriptor our_gate;
  Descriptor their_gate;
  Descriptor our_report;
  Descriptor their_report;

  static Ends make() {
    int gate[2];
    int report[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) != 0) {
      throw_system_error("make a pair of sockets");
    }
    Ends ends{Descriptor(gate[0]), Descriptor(gate[1]), Descriptor(), Descriptor()};
    if (pipe2(report, O_CLOEXEC) != 0) throw_system_error("make a pipe");
    ends.our_report = Descriptor(report[0]);
    ends.their_report = Descriptor(report[1]);
    return ends;
  }
};

ServerProcess::ServerProcess(std::vector<std::string> program, RunDirectory directory)
    : ServerProcess(std::move(program), std::move(directory), Ends::make()) {}

ServerProcess::ServerProcess(std::vector<std::string> program, RunDirectory directory, Ends ends)
    : directory_(std::move(directory)),
      gate_(std::move(ends.our_gate)),
      report_(std::move(ends.our_report)),
      process_(
          start(std::move(program), directory_, ends.their_gate.get(), ends.their_report.get())) {}

void ServerProcess::await_namespace(SteadyClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
  pollfd event{gate_.get(), POLLIN, 0};
  NamespaceFailure failure{};
  if (poll(&event, 1, static_cast<int>(std::max<long>(left.count(), 0))) != 1 ||
      read(gate_.get(), &failure, sizeof failure) != sizeof failure) {
    refuse_start(deadline);
  }
  if (failure.error != 0) throw SetupError(failure_text(failure));
  const std::string path = fmt::format("/proc/{}/ns/net", process_.pid());
  namespace_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (namespace_.get() < 0) throw_system_error("open " + path);
}

void ServerProcess::execute() {
  const char go = 1;
  if (send(gate_.get(), &go, 1, MSG_NOSIGNAL) != 1) throw_system_error("start a server's daemon");
  gate_.reset();
}

void ServerProcess::read_report() {
  std::array<char, 4096> bytes{};
  const ssize_t size = read(report_.get(), bytes.data(), bytes.size());
  if (size <= 0 || line_.size() > kLongestReport) refuse_start(SteadyClock::now() + kEndPatience);
  line_.append(bytes.data(), static_cast<std::size_t>(size));
  if (line_.find('\n') == std::string::npos) return;
  report_.reset();
  const auto report = nlohmann::json::parse(line_, nullptr, /*allow_exceptions=*/false);
  ready_ = report.is_object() && report.contains("ok") && report["ok"] == true;
  if (ready_) return;
  const bool told = report.is_object() && report.contains("error") && report["error"].is_string();
  const std::string why =
      told ? report["error"].get<std::string>() : "it said something unexpected";
  if (told && report.contains("usage") && report["usage"] == true) throw control::UsageError(why);
  throw SetupError(fmt::format("{}; its log is {}", why, directory_.log_file().string()));
}

void ServerProcess::refuse_start(SteadyClock::time_point deadline) {
  const bool ended = process_.ends_by(deadline);
  throw SetupError(fmt::format(
      "its daemon {}; its log is {}",
      ended ? "ended at its start with " + process_.end_text() : "did not tell how its start went",
      directory_.log_file().string()));
}

bool ServerProcess::note_end() {
  if (end_.has_value() || !process_.ends_by(SteadyClock::time_point())) return false;
  end_ = process_.end_text();
  ended_at_ = SteadyClock::now();
  return true;
}

}  // namespace gradcube::dataplane
