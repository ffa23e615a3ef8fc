// `gradcube at-host`: what runs on a host of a cluster while a command concerns all of them. A
// launcher joins its standard input and output to a HostGroup (cli/launch/host_group.h), which has
// the requests and answers. Nobody types it.
//
// Until it is told that the daemon is to stay, it ends the daemon that it has started, however its
// input, a signal or an error ends it.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/daemon_process.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/line_channel.h"
#include "cli/launch/host_group.h"
#include "cli/launch/launch.h"
#include "cli/launch/launch_signals.h"
#include "cli/setup/port_probe.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/output.h"
#include "cli/text/package_file.h"
#include "cli/up/own_daemon.h"
#include "control/base/errors.h"
#include "control/base/system_error.h"
#include "control/settings/cluster_key.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using nlohmann::json;

constexpr std::size_t kLongestRequest = 16 << 20;
// Between requests others may be slow; a launcher whose other end is lost without a word ends then.
constexpr auto kRequestPatience = std::chrono::minutes(30);
constexpr auto kRequestSlice = std::chrono::milliseconds(100);
constexpr auto kCommandGrace = std::chrono::seconds(5);  // beside that of what it has started
constexpr auto kStayPause = std::chrono::milliseconds(200);

void answer(json content) {
  // The mark comes first, whatever the other keys are.
  print("{}1,{}\n", kAnswerMark, json_text(content).substr(1));
  flush_output();
}

// Nothing when no more will come. rest: what has come behind the request before.
std::optional<json> next_request(std::string* rest) {
  const Deadline deadline = std::chrono::steady_clock::now() + kRequestPatience;
  std::string line;
  while (std::chrono::steady_clock::now() < deadline && !InterruptGuard::interrupted()) {
    const LineEnd end = read_line(STDIN_FILENO, std::chrono::steady_clock::now() + kRequestSlice,
                                  kLongestRequest, &line, rest);
    if (end == LineEnd::timed_out) continue;
    if (end != LineEnd::line) return std::nullopt;
    json request = json::parse(line, nullptr, false);
    if (!request.is_object()) throw SetupError("a request is no JSON object");
    return request;
  }
  return std::nullopt;
}

// Where a launcher's steps end with their processes, the daemon must not outlive this one.
bool is_step_of_launcher() {
  return std::getenv("SLURM_STEP_ID") != nullptr ||
         std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMI_RANK") != nullptr;
}

void begin(const json& request) {
  const auto version = text_field(request, "version");
  if (!version.has_value()) return;
  if (*version != GRADCUBE_VERSION) {
    throw SetupError(fmt::format(
        "gradcube is {} here, and {} where the command was typed: install the same version on all "
        "hosts",
        GRADCUBE_VERSION, *version));
  }
  for (const auto& [name, value] : field(request, "environment").items()) {
    if (value.is_string()) setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  }
  setenv(kThisHostAlone, "1", 1);
  const auto directory = text_field(request, "directory");
  if (directory && chdir(directory->c_str()) != 0) {
    throw control::system_error("cannot work in {}, where the command was typed", *directory);
  }
}

// The daemon that was started here.
class HostDaemon {
 public:
  HostDaemon() = default;
  ~HostDaemon() {
    if (!started_ || stays_) return;
    try {
      end_daemon(directory_, lock_ ? &*lock_ : nullptr);
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  HostDaemon(const HostDaemon&) = delete;
  HostDaemon& operator=(const HostDaemon&) = delete;

  void start(const json& what) {
    const ClusterHosts hosts = hosts_from_json(field(what, "hosts"));
    // The launcher that waits for the daemon may be gone.
    const auto waiting = [] {
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (poll(&input, 1, 0) > 0) raise(SIGTERM);
    };
    const StartLock::Owner owner{hosts.cluster, text_field(what, "host").value_or("")};
    lock_.emplace(directory_, owner, waiting);
    prepare(directory_, *lock_);
    control::ClusterSettings settings = hosts.settings;
    std::optional<control::OwnKeyFile> key;  // is gone again where no daemon starts
    if (const auto text = text_field(what, "key")) {
      key.emplace(directory_.key_file(), *text);
      settings.key_file = key->path().string();
    }
    DaemonStart start = daemon_of(settings);
    start.servers = "--server=" + text_field(what, "server").value_or("");
    start.is_trial = is_step_of_launcher();
    start.waiting = waiting;
    const pid_t pid = start_daemon(directory_, start);
    started_ = true;
    if (key) key->keep();  // end_daemon() removes it
    keep_cluster_hosts(directory_, hosts);
    answer({{"ok", true},
            {"pid", pid},
            {"run_directory", directory_.path().string()},
            {"log", directory_.log_file().string()},
            {"stays", start.is_trial}});
  }

  void stay() {
    lock_.reset();  // the user who gets the answer may end the cluster at once
    answer({{"ok", true}});
    stays_ = true;
    if (!is_step_of_launcher()) return;
    while (directory_.living_daemon() && is_held()) std::this_thread::sleep_for(kStayPause);
    stays_ = is_held();
  }

 private:
  // Of a launcher that is killed, as an mpirun on this host, its death is all that a step sees: the
  // input has ended before.
  [[nodiscard]] bool is_held() const {
    return !InterruptGuard::interrupted() && getppid() == launcher_;
  }

  const pid_t launcher_ = getppid();
  const RunDirectory directory_ = RunDirectory::from_environment();
  std::optional<StartLock> lock_;  // until it stays
  bool started_ = false;
  bool stays_ = false;
};

// What is written to an end that is gone fails, and ends no process before its daemon; in children
// the old mask is back.
void block_pipe_signal() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

// Where the list of hosts of whoever ends a cluster is old, another `up` may have started what runs
// here. Why it is not ended then, else nothing.
std::optional<std::string> other_cluster(const json& request) {
  const auto cluster = text_field(request, "cluster");
  const RunDirectory directory = RunDirectory::from_environment();
  if (!cluster || !directory.living_daemon()) return std::nullopt;
  const auto kept = kept_cluster_hosts(directory);
  if (kept && kept->cluster == *cluster) return std::nullopt;
  return fmt::format("another cluster runs in {} by now: {}", directory.path().string(),
                     kNothingToEnd);
}

// Runs a command of ours. Its exit code.
int run_words(const json& request, bool is_last, const InterruptGuard& interrupt) {
  LaunchTask task{
      .file = own_program().string(), .words = {"gradcube"}, .environment = own_environment()};
  for (const json& word : items(request, "words")) {
    if (word.is_string()) task.words.push_back(word.get<std::string>());
  }
  const std::uint64_t grace = count_field(request, "grace").value_or(0);
  const LaunchSettings settings{.tasks = {std::move(task)},
                                .grace = kCommandGrace + std::chrono::nanoseconds(grace),
                                .keeps_output = !is_last,
                                .hangup = STDIN_FILENO};
  const LaunchSignals signals(&interrupt.old_mask());
  Launcher launcher(settings, signals);
  const LaunchReport report = launcher.finish();
  const int code = report.ends.front().exit_code();
  if (report.interrupted_by != 0) raise(report.interrupted_by);  // blocked: next_request() sees it
  if (!is_last) {
    answer({{"ok", true},
            {"exit_code", code},
            {"output", launcher.output(0)},
            {"errors", launcher.errors(0)}});
  }
  return code;
}

json ports_json(PortProbe& probe) {
  json ports = json::array();
  for (const PortFacts& port : probe.look()) {
    ports.push_back({{"name", port.name},
                     {"mtu", port.mtu},
                     {"up", port.is_up},
                     {"carrier", port.has_carrier}});
  }
  return ports;
}

// For `gradcube setup`.
void probe_ports(const json& what, std::optional<PortProbe>& probe) {
  const std::uint64_t setup = count_field(what, "setup").value_or(0);
  if (!probe) {
    std::vector<std::string> names;
    for (const json& name : items(what, "names")) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
    probe.emplace(names);
    answer({{"ok", true}, {"ports", ports_json(*probe)}});
  } else if (const auto host = count_field(what, "greet")) {
    probe->greet(setup, *host);
    answer({{"ok", true}});
  } else {
    json heard = json::array();
    for (const PortProbe::Heard& each : probe->take_heard(setup)) {
      heard.push_back({each.port, each.from.host, each.from.port});
    }
    answer({{"ok", true}, {"heard", heard}, {"ports", ports_json(*probe)}});
  }
}

int run_at_host() {
  const InterruptGuard interrupt;
  block_pipe_signal();
  // Not before the first request, whose environment says where the run directory is.
  std::optional<HostDaemon> daemon;
  std::optional<PortProbe> probe;
  std::string rest;
  std::optional<std::string> host;  // as the user calls it, who sees what is written from now on
  try {
    while (const auto request = next_request(&rest)) {
      const bool is_last = flag_field(*request, "last").value_or(false);
      if (is_last) host = text_field(*request, "host").value_or("");
      begin(*request);
      if (!daemon) daemon.emplace();
      if (request->contains("ports")) {
        probe_ports((*request)["ports"], probe);
      } else if (request->contains("start")) {
        daemon->start((*request)["start"]);
      } else if (request->contains("stay")) {
        daemon->stay();
        return 0;
      } else if (items(*request, "words").empty()) {
        answer({{"ok", true}, {"exit_code", 0}});  // it is others that are asked
      } else if (const auto other = other_cluster(*request)) {
        answer({{"ok", true}, {"exit_code", kExitFailure}, {"output", ""}, {"errors", *other}});
      } else {
        const int code = run_words(*request, is_last, interrupt);
        if (is_last) return code;
      }
    }
    return 0;
  } catch (const std::exception& error) {
    daemon.reset();  // whether or not there is anybody to answer
    if (host) {
      complain(fmt::format("host {}: {}", *host, error.what()));
    } else {
      answer({{"ok", false}, {"error", error.what()}});
    }
    return kExitFailure;
  }
}

}  // namespace

void add_at_host(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand("at-host", "");
  command->group("");  // not in the help
  command->callback([&action] { action = [] { return run_at_host(); }; });
}

}  // namespace gradcube::cli
