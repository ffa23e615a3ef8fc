#include <chrono>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/cluster/control_client.h"
#include "cli/cluster/daemon_process.h"
#include "cli/cluster/running_cluster.h"
#include "cli/cluster/settings_options.h"
#include "cli/status/status_text.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/up/commands.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/settings/cluster_file.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::ClusterSettings;
using control::DaemonLock;
using control::RunDirectory;
using control::SetupError;

constexpr auto kDyingPatience = std::chrono::milliseconds(500);
constexpr auto kUpPause = std::chrono::milliseconds(10);

struct UpOptions {
  SettingsOptions settings;
  std::string cluster_file;
  bool json = false;
};

ClusterSettings settings_of(const UpOptions& options) {
  ClusterSettings settings;
  if (!options.cluster_file.empty()) settings = control::read_cluster_file(options.cluster_file);
  options.settings.apply(settings);
  control::validate(settings);
  // A topology without a plan must be refused here, before anything is started.
  const control::Topology topology = settings.rated_topology();
  const auto placement = control::place_on_trainers_servers(topology, settings.aggregators);
  control::make_plan(control::default_algorithm(topology, placement), topology, placement,
                     "--topology");
  return settings;
}

// What has ended of the cluster that runs; nothing if it cannot be asked.
std::string ended_part(const RunDirectory& directory) {
  try {
    const RunningCluster cluster = running_cluster(directory);
    return ended_daemons(cluster, control::Placement::all(cluster.topology));
  } catch (const std::exception&) {
    return "";
  }
}

[[noreturn]] void throw_runs_already(const RunDirectory& directory) {
  const auto daemon = directory.living_daemon();
  const std::string ended = ended_part(directory);
  throw SetupError(
      fmt::format("a cluster runs already{} in {}: {}",
                  daemon && daemon->pid > 0 ? fmt::format(" (pid {})", daemon->pid) : "",
                  directory.path().string(),
                  ended.empty() ? "`gradcube status` shows it, `gradcube down` ends it" : ended));
}

// A daemon that was just killed holds its lock until the kernel has taken its memory back.
bool outlives_patience(const RunDirectory& directory) {
  const auto deadline = std::chrono::steady_clock::now() + kDyingPatience;
  while (directory.living_daemon()) {
    if (std::chrono::steady_clock::now() >= deadline) return true;
    std::this_thread::sleep_for(kUpPause);
  }
  return false;
}

// Progress on standard error, where a failure to write must not keep a cluster from starting.
template <typename... Values>
void report(fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// Makes sure that the directory exists, that no daemon runs in it, and that no sockets of an
// earlier one are left.
void prepare(const RunDirectory& directory) {
  directory.create();
  if (outlives_patience(directory)) throw_runs_already(directory);
  const auto lock = DaemonLock::acquire(directory);
  if (!lock) throw_runs_already(directory);
  const std::size_t stale = directory.stale_sockets().size();
  if (stale == 0) return;
  directory.remove_stale_sockets(*lock);
  report("removed {} sockets of a daemon that did not end in good order; its log: {}\n", stale,
         directory.old_log_file().string());
}

// On a terminal one line that counts the seconds, elsewhere a line at the start.
class Progress {
 public:
  explicit Progress(std::string what)
      : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) == 1) {
    if (!terminal_) report("{} ...\n", what_);
  }
  ~Progress() {
    if (terminal_) report("\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void tick() const {
    if (!terminal_) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    report("\r{} ... {:.1f} s", what_, passed.count());
  }

 private:
  std::string what_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

pid_t start(const RunDirectory& directory, const ClusterSettings& settings) {
  const Progress progress(fmt::format("starting {}: {}", settings.topology.spec(),
                                      control::servers_text(settings.topology)));
  DaemonStart start = daemon_of(settings);
  start.waiting = [&] { progress.tick(); };
  return start_daemon(directory, start);
}

void print_summary(const RunDirectory& directory, const nlohmann::json& status) {
  print(
      "{}{:<12}  {}\n\n"
      "the cluster is up; next:\n"
      "  gradcube perf allreduce --sizes 1K,64K,12.5M --check\n"
      "  gradcube status\n"
      "  gradcube down\n",
      status_summary(status), "directory", directory.path().string());
}

void print_result(const UpOptions& options, const RunDirectory& directory, pid_t pid,
                  const nlohmann::json& status) {
  if (options.json) {
    print("{}\n", nlohmann::json{{"ok", true},
                                 {"pid", pid},
                                 {"run_directory", directory.path().string()},
                                 {"log", directory.log_file().string()},
                                 {"status", status}}
                      .dump());
  } else {
    print_summary(directory, status);
  }
  flush_output();
}

int run_up(const UpOptions& options) {
  const ClusterSettings settings = settings_of(options);
  const RunDirectory directory = RunDirectory::from_environment();
  prepare(directory);
  const pid_t pid = start(directory, settings);
  const nlohmann::json status = ask_status(directory);
  try {
    print_result(options, directory, pid, status);
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("{}; the cluster is up: `gradcube down` ends it", error.what()));
  }
  return 0;
}

}  // namespace

void add_up(CLI::App& tool, Action& action) {
  CLI::App* command =
      tool.add_subcommand("up", "Start a cluster on this host and return when it is ready");
  auto options = std::make_shared<UpOptions>();
  options->settings.add_all(command);
  command
      ->add_option("--cluster", options->cluster_file, "A cluster file (TOML); flags override it")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Needs no root, no huge pages and no NIC, but --fabric veth needs root and iproute2. K, M "
      "and "
      "G are\n"
      "decimal, Ki, Mi and Gi binary.\n"
      "Examples:\n"
      "  gradcube up --topology bcube:3,2\n"
      "  gradcube up --topology bcube:3,2 --rate 200mbit --mtu 9000 --loss 0.001\n"
      "  gradcube up --topology bcube:3,2 --fabric memif --rate 200mbit   a daemon per server\n"
      "  gradcube up --topology bcube:3,2 --fabric veth --rate 100mbit    the same on real links\n"
      "  gradcube up --topology star:3 --fabric udp                       the same by datagrams\n"
      "  gradcube up --topology bcube:4,2 --absent \"3,1 3,2 3,3\"           13 of 16 servers\n"
      "  gradcube up --topology star:9 --aggregators 8                     8 workers and a PBox\n"
      "  gradcube up --cluster cluster.toml --seed 7");
  command->callback([options, &action] { action = [options] { return run_up(*options); }; });
}

}  // namespace gradcube::cli
