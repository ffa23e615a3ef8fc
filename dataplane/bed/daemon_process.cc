#include "dataplane/bed/daemon_process.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "control/base/json_text.h"
#include "control/base/system_error.h"
#include "control/settings/ask_daemons.h"
#include "dataplane/bed/network_namespace.h"
#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

using control::Descriptor;
using control::RunDirectory;
using control::SetupError;
using SteadyClock = DaemonProcess::SteadyClock;

namespace {

constexpr std::size_t kLongestReport = 1 << 16;
constexpr auto kReportPatience = std::chrono::seconds(1);
constexpr auto kStartPatience = std::chrono::seconds(20);
constexpr auto kStartPatiencePerDaemon = std::chrono::milliseconds(500);
constexpr auto kEndPatience = std::chrono::seconds(5);

// What the child uses, all of it made before the fork.
struct Child {
  bool own_network;
  std::vector<const char*> arguments;
  std::string exec_failure;
  int gate;
  int report;
  int log;
  int null_device;
};

void become_daemon(const Child& child) {
  NamespaceFailure failure{};
  if (child.own_network) failure = enter_new_network_namespace();
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

ChildProcess start(std::vector<std::string> program, const RunDirectory& directory,
                   bool own_network, int gate, int report) {
  directory.create();
  const Descriptor log = directory.begin_log();
  const Descriptor null_device(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null_device.get() < 0) throw control::system_error("cannot read /dev/null");
  program.emplace_back("--ready-fd");
  program.push_back(std::to_string(report));
  program.emplace_back("--parent");
  program.push_back(std::to_string(getpid()));
  const nlohmann::json failure = {{"ok", false}, {"error", "cannot run " + program.front()}};
  Child child{.own_network = own_network,
              .arguments = {},
              .exec_failure = control::json_text(failure) + "\n",
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
struct DaemonProcess::Ends {
  Descriptor our_gate;
  Descriptor their_gate;
  Descriptor our_report;
  Descriptor their_report;

  static Ends make() {
    int gate[2];
    int report[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) != 0) {
      throw control::system_error("cannot make a pair of sockets");
    }
    Ends ends{Descriptor(gate[0]), Descriptor(gate[1]), Descriptor(), Descriptor()};
    if (pipe2(report, O_CLOEXEC) != 0) throw control::system_error("cannot make a pipe");
    ends.our_report = Descriptor(report[0]);
    ends.their_report = Descriptor(report[1]);
    return ends;
  }
};

DaemonProcess::DaemonProcess(std::vector<std::string> program, RunDirectory directory,
                             Network network)
    : DaemonProcess(std::move(program), std::move(directory), network, Ends::make()) {}

DaemonProcess::DaemonProcess(std::vector<std::string> program, RunDirectory directory,
                             Network network, Ends ends)
    : directory_(std::move(directory)),
      gate_(std::move(ends.our_gate)),
      report_(std::move(ends.our_report)),
      process_(start(std::move(program), directory_, network == Network::own, ends.their_gate.get(),
                     ends.their_report.get())) {}

void DaemonProcess::await_namespace(SteadyClock::time_point deadline) {
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
  if (namespace_.get() < 0) throw control::system_error("cannot open {}", path);
}

void DaemonProcess::execute() {
  const char go = 1;
  if (send(gate_.get(), &go, 1, MSG_NOSIGNAL) != 1)
    throw control::system_error("cannot start a server's daemon");
  gate_.reset();
}

void DaemonProcess::read_report() {
  std::array<char, 4096> bytes{};
  const ssize_t size = read(report_.get(), bytes.data(), bytes.size());
  if (size <= 0 || line_.size() > kLongestReport)
    refuse_start(SteadyClock::now() + kReportPatience);
  line_.append(bytes.data(), static_cast<std::size_t>(size));
  if (line_.find('\n') == std::string::npos) return;
  report_.reset();
  const control::DaemonAnswer report = control::read_answer(line_);
  ready_ = report.why.empty();
  if (ready_) return;
  if (report.usage) throw control::UsageError(report.why);
  throw SetupError(fmt::format("{}; its log is {}", report.why, directory_.log_file().string()));
}

void DaemonProcess::refuse_start(SteadyClock::time_point deadline) {
  const bool ended = process_.ends_by(deadline);
  throw SetupError(fmt::format(
      "its daemon {}; its log is {}",
      ended ? "ended at its start with " + process_.end_text() : "did not tell how its start went",
      directory_.log_file().string()));
}

bool DaemonProcess::note_end() {
  if (end_.has_value() || !process_.ends_by(SteadyClock::time_point())) return false;
  end_ = process_.end_text();
  ended_at_ = SteadyClock::now();
  return true;
}

std::string DaemonProcess::end_text() const {
  if (!end_.has_value()) return "";
  const auto ago = std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - ended_at_);
  return fmt::format("its daemon ended {} s ago with {}; its log is {}", ago.count(), *end_,
                     directory_.log_file().string());
}

void await_reports(std::deque<DaemonProcess>& daemons, const std::vector<std::string>& names,
                   const RunDirectory& logs) {
  const auto patience = kStartPatience + kStartPatiencePerDaemon * daemons.size();
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  for (;;) {
    std::vector<pollfd> events;
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < daemons.size(); ++i) {
      events.push_back({daemons[i].report_descriptor(), POLLIN, 0});
      if (!daemons[i].ready()) missing.push_back(names[i]);
    }
    if (missing.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) {
      throw SetupError(
          fmt::format("these daemons were not ready after {} s: {}; their logs are in {}",
                      std::chrono::duration_cast<std::chrono::seconds>(patience).count(),
                      fmt::join(missing, ", "), logs.path().string()));
    }
    poll(events.data(), events.size(), static_cast<int>(left.count()));
    for (std::size_t i = 0; i < daemons.size(); ++i) {
      if (events[i].revents == 0) continue;
      for_daemon(names[i], [&] { daemons[i].read_report(); });
    }
  }
}

void watch_daemons(ControlLoop& loop, std::deque<DaemonProcess>& daemons,
                   const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < daemons.size(); ++i) {
    DaemonProcess& daemon = daemons[i];
    loop.add(daemon.process().descriptor(), [&loop, &daemon, name = names[i]] {
      if (!daemon.note_end()) return;
      loop.remove(daemon.process().descriptor());
      log::error("{}: {}", name, daemon.end_text());
    });
  }
}

std::vector<std::filesystem::path> control_sockets(const std::deque<DaemonProcess>& daemons) {
  std::vector<std::filesystem::path> sockets;
  for (const DaemonProcess& daemon : daemons)
    sockets.push_back(daemon.directory().control_socket());
  return sockets;
}

void end_daemons(std::deque<DaemonProcess>& daemons, const std::vector<std::string>& names) {
  for (const DaemonProcess& daemon : daemons) daemon.process().send(SIGTERM);
  const SteadyClock::time_point deadline = SteadyClock::now() + kEndPatience;
  for (std::size_t i = 0; i < daemons.size(); ++i) {
    if (daemons[i].process().ends_by(deadline)) continue;
    log::warn("{} does not end: killing its daemon", names[i]);
  }
  daemons.clear();
}

}  // namespace gradcube::dataplane
