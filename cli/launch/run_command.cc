#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/running_cluster.h"
#include "cli/launch/launch.h"
#include "cli/launch/launch_environment.h"
#include "cli/launch/launch_process.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using control::UsageError;

constexpr const char* kThisHost = "127.0.0.1";

struct RunOptions {
  unsigned trainers = 1;
  std::string members;
  std::string master;
  unsigned port = 0;  // 0: one that is free
  std::string grace = kDefaultGrace;
  bool no_prefix = false;
  bool json = false;
};

// Where the processes of this host are to be.
struct Places {
  RunningCluster cluster;
  control::Placement placement;
  std::vector<PerfTrainer> trainers;  // by rank
  bool others_are_elsewhere = false;
  std::string master;  // where rank 0 is to listen
};

// The address of the host of rank 0, where `up` has noted it.
std::string master_of(const RunDirectory& directory, const control::Placement& placement) {
  const auto hosts = kept_cluster_hosts(directory);
  if (!hosts) return "";
  for (std::size_t host = 0; host < hosts->names.size(); ++host) {
    if (hosts->server(host) == placement.place(0).server) return hosts->address(host);
  }
  return "";
}

Places find_places(const RunDirectory& directory, const RunOptions& options) {
  RunningCluster cluster = running_cluster(directory);
  const auto members = members_of(cluster.topology, options.members);
  const auto placement =
      placement_of(cluster, members, "--members").with_trainers(options.trainers, "--trainers");
  require_daemons(cluster, placement);
  std::vector<PerfTrainer> trainers = trainers_of(cluster, placement);
  const bool others_are_elsewhere = trainers.size() < placement.trainers();
  std::string master = options.master;
  if (others_are_elsewhere && master.empty()) master = master_of(directory, placement);
  if (trainers.empty()) throw_none_is_here();
  if (others_are_elsewhere && (master.empty() || options.port == 0)) {
    throw UsageError(fmt::format(
        "{} of {} servers are on this host: run this command on all of their hosts, with the same "
        "--master ADDRESS of the first server's host and the same --port",
        trainers.size() / placement.trainers_per_server(), placement.ranks()));
  }
  return {std::move(cluster), placement, std::move(trainers), others_are_elsewhere,
          master.empty() ? kThisHost : master};
}

// Bound, so that no other process gets the port by chance before rank 0 listens there; that one
// may, if it reuses addresses, because nobody listens here.
struct HeldPort {
  control::Descriptor socket;
  std::uint16_t number = 0;
};

HeldPort hold_port() {
  control::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.get(), any, length) != 0 || getsockname(socket.get(), any, &length) != 0) {
    throw SetupError(fmt::format("cannot find a free port for MASTER_PORT: {}; --port names one",
                                 std::strerror(errno)));
  }
  return {std::move(socket), ntohs(address.sin_port)};
}

LaunchWorld world_of(const Places& places, const RunOptions& options, std::uint16_t port) {
  // What is the same on all hosts is the port.
  const std::uint64_t id = places.others_are_elsewhere ? options.port : getpid();
  return {
      .servers = places.placement.ranks(),
      .trainers_per_server = places.placement.trainers_per_server(),
      .master = places.master,
      .port = port,
      .run_id = fmt::format("run-{}", id),
  };
}

// "rank 3 on server [1,0]"
std::string name_of(const Places& places, std::size_t task) {
  const PerfTrainer& trainer = places.trainers[task];
  return fmt::format(
      "rank {} on server {}", trainer.rank,
      places.cluster.topology.space().text(places.placement.place(trainer.rank).server));
}

std::string end_text(const ProcessEnd& end) {
  return end.by_signal
             ? fmt::format("was ended by signal {} ({})", end.number, strsignal(end.number))
             : fmt::format("ended with exit code {}", end.number);
}

void complain_about(const LaunchReport& report, const Places& places, const RunOptions& options) {
  if (report.output_error != 0) {
    complain(fmt::format("cannot write to standard output: {}; all processes were ended",
                         std::strerror(report.output_error)));
  } else if (report.first_failure) {
    complain(fmt::format("{} {}{}", name_of(places, *report.first_failure),
                         end_text(report.ends[*report.first_failure]),
                         report.ends.size() > 1 ? "; the others were ended" : ""));
  } else if (report.interrupted_by != 0 && !is_for_this_host_alone()) {  // else one host says it
    complain("interrupted: all processes were ended");
  }
  for (const std::size_t task : report.killed) {
    complain(fmt::format("{} did not end within {} of SIGTERM and was killed",
                         name_of(places, task), options.grace));
  }
}

nlohmann::json end_json(const Places& places, const LaunchReport& report, std::size_t task) {
  using nlohmann::json;
  const PerfTrainer& trainer = places.trainers[task];
  const ProcessEnd& end = report.ends[task];
  return {{"rank", trainer.rank},
          {"server", json(control::address_json(places.cluster.topology.space(),
                                                places.placement.place(trainer.rank).server))},
          {"local_rank", trainer.local},
          {"exit_code", end.by_signal ? json(nullptr) : json(end.number)},
          {"signal", end.by_signal ? json(end.number) : json(nullptr)}};
}

void print_json(const LaunchReport& report, const Places& places, int exit_code, double seconds) {
  using nlohmann::json;
  json processes = json::array();
  for (std::size_t i = 0; i < report.ends.size(); ++i) {
    processes.push_back(end_json(places, report, i));
  }
  const json first =
      report.first_failure ? json(places.trainers[*report.first_failure].rank) : json(nullptr);
  print("{}\n", json{{"ok", exit_code == 0},
                     {"exit_code", exit_code},
                     {"first_failure", first},
                     {"interrupted", report.interrupted_by != 0},
                     {"processes", processes},
                     {"seconds", seconds}}
                    .dump());
}

int exit_code_of(const LaunchReport& report) {
  if (report.output_error != 0) return kExitFailure;
  if (report.first_failure) return report.exit_code;
  return report.interrupted_by != 0 ? 128 + report.interrupted_by : 0;
}

LaunchSettings settings_of(const RunOptions& options, const std::string& file,
                           const std::vector<std::string>& words, const Places& places,
                           std::uint16_t port) {
  const LaunchWorld world = world_of(places, options, port);
  LaunchSettings settings{
      .grace = std::chrono::nanoseconds(control::parse_duration(options.grace, "--grace")),
      .output_to_errors = options.json};
  for (const PerfTrainer& trainer : places.trainers) {
    settings.tasks.push_back({.mark = options.no_prefix ? "" : fmt::format("[{}] ", trainer.rank),
                              .file = file,
                              .words = words,
                              .environment = launch_environment(environ, world, trainer)});
  }
  return settings;
}

int run_run(const RunOptions& options, const std::vector<std::string>& words) {
  if (words.empty()) {
    throw UsageError(
        "run: the command is missing; expected `gradcube run -- COMMAND ARGS...`, for example "
        "`gradcube run -- python3 train.py`");
  }
  control::parse_duration(options.grace, "--grace");
  const auto begin = std::chrono::steady_clock::now();
  LaunchReport report;
  try {
    const std::string file = find_command(words.front(), std::getenv("PATH"));
    const Places places = find_places(RunDirectory::from_environment(), options);
    const HeldPort port = options.port == 0 ? hold_port()
                                            : HeldPort{control::Descriptor(),
                                                       static_cast<std::uint16_t>(options.port)};
    const LaunchSettings settings = settings_of(options, file, words, places, port.number);
    const unsigned cores = std::thread::hardware_concurrency();
    // Of several hosts, the first one says it.
    const bool is_first = places.trainers.front().rank == 0;
    if (is_first && cores > settings.tasks.size() && std::getenv("OMP_NUM_THREADS") == nullptr) {
      complain(fmt::format(
          "OMP_NUM_THREADS is not set: it is 1 for each process; set it to use more of {} cores",
          cores));
    }
    const LaunchSignals signals;
    report = Launcher(settings, signals).finish();
    const int exit_code = exit_code_of(report);
    complain_about(report, places, options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (options.json) print_json(report, places, exit_code, seconds.count());
    flush_output();
    // Still blocked: it ends this process when `signals` is gone, as a shell expects.
    if (report.interrupted_by != 0 && !report.first_failure) raise(report.interrupted_by);
    return exit_code;
  } catch (const CommandError& error) {
    complain(error.what());
    return error.exit_code();
  }
}

void add_options(CLI::App* command, RunOptions* options) {
  add_number(command, "--trainers", options->trainers, 1, control::kMaxLocalTrainers,
             "Processes on each server");
  add_text(command, "--members", options->members,
           "The servers, in one argument: \"0,0 0,1 0,2\" (default: all)");
  add_text(command, "--master", options->master,
           "MASTER_ADDR, where servers are on several hosts: the first one's address (default: as "
           "`up --hosts` has it, else 127.0.0.1)");
  command
      ->add_option(
          "--port", options->port,
          "MASTER_PORT (default: one that is free; on several hosts one at random from 20000 "
          "to 31999, which is not tried)")
      ->check(whole_number_in(1, 65535));
  add_text(command, "--grace", options->grace,
           "Time from SIGTERM to SIGKILL for processes that are to end");
  command->add_flag("--no-prefix", options->no_prefix, "Do not mark lines with ranks");
  command->add_flag("--json", options->json,
                    "Print one JSON object at the end; what the processes print goes to standard "
                    "error");
}

constexpr const char* kRunFooter =
    "gradcube run [OPTIONS] -- COMMAND ARGS...\n"
    "\n"
    "Each process finds in its environment\n"
    "  GRADCUBE_SOCKET                 its server's socket, which gradcube.Session() takes\n"
    "  RANK, WORLD_SIZE                of all processes; RANK is that in a Gradcube job, too\n"
    "  LOCAL_RANK, LOCAL_WORLD_SIZE    of those on its server\n"
    "  GROUP_RANK, GROUP_WORLD_SIZE    of the servers\n"
    "  MASTER_ADDR, MASTER_PORT        where the process of rank 0 may listen\n"
    "  TORCHELASTIC_RUN_ID             the same for all: a name for a job. It is made of this\n"
    "                                  tool's pid, or of the port on several hosts, and may come\n"
    "                                  again\n"
    "and OMP_NUM_THREADS=1 and PYTHONUNBUFFERED=1 unless they are set. Input is empty. Lines have\n"
    "the rank in front: \"[3] ...\".\n"
    "The first process that fails ends all others, and its exit code (128 + signal) is the run's.\n"
    "So do Ctrl-C and SIGTERM; once more, and they are killed at once. 126 or 127: the command\n"
    "cannot be run or is not there. No process is pinned to cores.\n"
    "Where `up` has started the daemons of several hosts, the processes of all of them are\n"
    "started from here, in a folder of this name, with the variables GRADCUBE*, PYTHON* and OMP_*\n"
    "of here.\n"
    "Examples:\n"
    "  gradcube run -- python3 train.py --epochs 3\n"
    "  gradcube run --trainers 3 -- python3 train.py     several on each server\n"
    "  gradcube run --members \"0,0 0,1\" -- ./train      on some of the servers\n"
    "  gradcube run --no-prefix -- printenv RANK\n"
    "  OMP_NUM_THREADS=4 gradcube run --grace 30s -- python3 train.py";

}  // namespace

void add_run(CLI::App& tool, Action& action, const std::vector<std::string>& words) {
  CLI::App* command = tool.add_subcommand(
      "run", "Start a process of your own for each server of the running cluster");
  auto& options = options_of<RunOptions>(
      command, action, [&words](const RunOptions& given) { return run_run(given, words); });
  add_options(command, &options);
  command->footer(kRunFooter);
}

}  // namespace gradcube::cli
