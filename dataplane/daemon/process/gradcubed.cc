// gradcubed: the daemon. `gradcube up` starts it; `gradcubed --help` tells how to start it by hand.
//
// The process that starts it gives it a pipe (--ready-fd) and learns there when it is ready
// (starter.h).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "control/base/errors.h"
#include "control/settings/cluster_file.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/host_list.h"
#include "control/settings/run_directory.h"
#include "dataplane/bed/child_process.h"
#include "dataplane/bed/test_bed.h"
#include "dataplane/daemon/port_drivers.h"
#include "dataplane/daemon/process/daemon.h"
#include "dataplane/daemon/process/starter.h"
#include "dataplane/daemon/process/switch_daemon.h"
#include "dataplane/sockets/daemon_log.h"

namespace {

using gradcube::control::ClusterSettings;
using gradcube::control::DaemonLock;
using gradcube::control::FabricKind;
using gradcube::control::RunDirectory;
using gradcube::control::SetupError;
using gradcube::control::UsageError;
using gradcube::dataplane::LoneServer;
using gradcube::dataplane::PortDriver;
using gradcube::dataplane::Starter;
namespace log = gradcube::dataplane::log;

// DPDK aborts where it cannot open what it needs.
constexpr rlim_t kLeastDescriptors = 64;

// A trainer takes several descriptors. The soft limit of 1024 is for select(), which is not used
// here.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < kLeastDescriptors) {
    throw SetupError(
        fmt::format("this process may open {} files, and a daemon needs {} or more: "
                    "raise `ulimit -n`",
                    limit.rlim_max, kLeastDescriptors));
  }
}

// What the command line says.
struct Options {
  bool all = false;
  bool memif = false;
  bool veth = false;
  bool udp = false;
  std::optional<unsigned> switches;
  std::string server;
  std::string server_program;
  std::map<const PortDriver*, std::vector<std::string>> ports;  // what each driver's option names
  std::string run_dir;
  std::string socket_dir;
  std::string settings;
  std::string cluster_file;
  int ready_descriptor = -1;
  std::optional<pid_t> parent;
};

ClusterSettings settings_of(const Options& options) {
  if (!options.settings.empty()) {
    return gradcube::control::settings_from_json(nlohmann::ordered_json::parse(options.settings));
  }
  ClusterSettings settings;
  if (!options.cluster_file.empty()) {
    settings = gradcube::control::read_cluster_file(options.cluster_file);
  }
  gradcube::control::validate(settings);
  return settings;
}

// Of the drivers that have one.
std::vector<std::string_view> port_options() {
  std::vector<std::string_view> names;
  for (const PortDriver* driver : gradcube::dataplane::kPortDrivers) {
    if (!driver->option.empty()) names.push_back(driver->option);
  }
  return names;
}

// What each driver's option names; if there is no option, the interfaces that the settings name.
std::map<const PortDriver*, std::vector<std::string>> named_ports(const Options& options,
                                                                  const ClusterSettings& settings,
                                                                  std::uint32_t server) {
  auto ports = options.ports;
  const bool is_any =
      std::ranges::any_of(ports, [](const auto& named) { return !named.second.empty(); });
  if (!is_any && !settings.interfaces.empty()) {
    ports[&gradcube::dataplane::kInterfaceDriver] =
        gradcube::control::interfaces_of(settings.topology, settings.interfaces, server);
  }
  return ports;
}

// Adapts the settings to its ports.
std::optional<LoneServer> lone_server(const Options& options, ClusterSettings& settings) {
  if (options.all) return std::nullopt;
  LoneServer lone;
  try {
    lone.server = settings.topology.space().parse(options.server);
  } catch (const std::invalid_argument& error) {
    throw UsageError(
        fmt::format("--server: {} (topology {})", error.what(), settings.topology.spec()));
  }
  const auto ports = named_ports(options, settings, lone.server);
  const std::string_view fabric = gradcube::control::fabric_name(settings.fabric);
  for (const PortDriver* driver : gradcube::dataplane::kPortDrivers) {
    const bool is_set = driver->names == PortDriver::Names::by_settings && driver->name == fabric;
    if (!is_set && ports.at(driver).empty()) continue;
    lone.driver = driver;
    driver->adapt(settings);
    if (is_set) continue;
    lone.ports = gradcube::dataplane::checked_names(*driver, ports.at(driver), settings.topology);
  }
  if (lone.driver == nullptr) {
    throw UsageError(
        fmt::format("--server: its ports are missing; expected one of {} as well, or fabric = "
                    "\"udp\" and `hosts`, or `interfaces`, in the cluster file",
                    fmt::join(port_options(), ", ")));
  }
  return lone;
}

// Of a process that has no server.
ClusterSettings with_fabric(ClusterSettings settings, FabricKind fabric) {
  settings.fabric = fabric;
  gradcube::control::validate(settings);
  return settings;
}

// Where the daemon serves others, lets them find its sockets.
void admit_tenants(const ClusterSettings& settings, const RunDirectory& directory) {
  if (!settings.has_tenants()) return;
  const auto closed = directory.admit_others();
  if (!closed.has_value()) return;
  log::warn(
      "{} is closed to others: those whom this daemon serves may not get to {}; choose "
      "another --run-dir or GRADCUBE_RUN",
      closed->string(), directory.path().string());
}

// Serves until it is told to end.
template <typename Server>
void run(Server& server, const std::string& what, Starter& starter) {
  log::info("ready: {}", what);
  if (!starter.tell({{"ok", true}, {"pid", getpid()}})) {
    throw SetupError("the process that started this daemon ended before it was ready");
  }
  server.run();
}

void run_daemon(const Options& options, const ClusterSettings& given, const RunDirectory& directory,
                const DaemonLock& lock, Starter& starter) {
  const RunDirectory sockets =
      options.socket_dir.empty() ? directory : RunDirectory(options.socket_dir);
  sockets.create();
  admit_tenants(given, directory);
  admit_tenants(given, sockets);
  ClusterSettings settings = given;
  const std::optional<LoneServer> lone = lone_server(options, settings);
  if (!lone.has_value() && !settings.interfaces.empty()) {
    throw UsageError("the settings name the interfaces of servers: start gradcubed with --server");
  }
  if (!lone.has_value() && settings.fabric != FabricKind::embedded) {
    throw UsageError(fmt::format("the settings ask for the {0} fabric: start gradcubed with --{0}",
                                 gradcube::control::fabric_name(settings.fabric)));
  }
  gradcube::dataplane::Daemon daemon(settings, lone, directory, lock, sockets);
  run(daemon,
      (lone.has_value() ? "server " + options.server + " of " : "") + settings.topology.spec(),
      starter);
}

void run_switches(const Options& options, const ClusterSettings& settings,
                  const RunDirectory& directory, const DaemonLock& lock, Starter& starter) {
  gradcube::dataplane::SwitchDaemon daemon(with_fabric(settings, FabricKind::memif),
                                           *options.switches, directory, lock);
  run(daemon,
      fmt::format("part {} of the switches of {}", *options.switches, settings.topology.spec()),
      starter);
}

void run_bed(const Options& options, const ClusterSettings& settings, const RunDirectory& directory,
             const DaemonLock& lock, Starter& starter) {
  admit_tenants(settings, directory);
  gradcube::dataplane::TestBed::Programs programs;
  programs.daemon = std::filesystem::read_symlink("/proc/self/exe");
  programs.server = options.server_program.empty()
                        ? programs.daemon
                        : std::filesystem::absolute(options.server_program);
  const FabricKind fabric = options.udp    ? FabricKind::udp
                            : options.veth ? FabricKind::veth
                                           : FabricKind::memif;
  gradcube::dataplane::TestBed bed(with_fabric(settings, fabric), directory, lock, programs,
                                   GRADCUBE_VERSION);
  run(bed, "a test bed for " + settings.topology.spec(), starter);
}

int serve(const Options& options, Starter& starter) {
  const RunDirectory directory =
      options.run_dir.empty() ? RunDirectory::from_environment() : RunDirectory(options.run_dir);
  directory.create();
  const std::optional<DaemonLock> lock = DaemonLock::acquire(directory);
  if (!lock.has_value()) {
    throw SetupError(fmt::format(
        "a cluster runs already in {}: `gradcube status` shows it, `gradcube down` ends it",
        directory.path().string()));
  }
  lock->write_pid();
  // In the run directory of one server living daemons of others may have their sockets.
  if (options.server.empty()) directory.remove_stale_sockets(*lock);
  const bool bed = options.veth || options.memif || options.udp;
  if (!options.server_program.empty() && !bed) {
    throw UsageError("--server-program: expected --memif, --veth or --udp as well");
  }
  const auto run_chosen = bed ? run_bed : options.switches.has_value() ? run_switches : run_daemon;
  run_chosen(options, settings_of(options), directory, *lock, starter);
  log::info("down");
  return 0;
}

// What the system refuses where nobody else gives it a name: memory, and threads.
std::string reason(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "there is not enough memory: raise what this process may have of it (ulimit -v, the "
           "container's memory), or take a smaller topology";
  }
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return fmt::format(
        "cannot start a thread: {}: raise what this user or container may have of processes "
        "(ulimit -u, pids.max)",
        system->code().message());
  }
  return error.what();
}

// Returns the option that names one server.
CLI::Option* add_servers(CLI::App& app, Options& options) {
  auto* which = app.add_option_group("servers", "which servers this process runs");
  which->add_flag("--all", options.all, "every server of an embedded cluster");
  CLI::Option* server = which->add_option(
      "--server", options.server,
      fmt::format(
          "one server, by its address (\"2,1\"), with its ports by one of {}, or by `hosts` "
          "of the cluster file",
          fmt::join(port_options(), ", ")));
  which->add_option("--switches", options.switches,
                    "no server, but emulated switches to which servers connect by memif: those of "
                    "process 0, 1, ... (a process has 32 ports at most, and whole switches)");
  which->add_flag("--memif", options.memif,
                  "a daemon for every server, joined by memif to daemons of switches");
  which->add_flag(
      "--veth", options.veth,
      "a daemon for every server, each in a network namespace of its own, joined by veths and "
      "bridges (needs root)");
  which->add_flag("--udp", options.udp,
                  "a daemon for every server, joined by datagrams between addresses of this host");
  which->require_option(1);
  return server;
}

void add_ports(CLI::App& app, CLI::Option* server, Options& options) {
  std::vector<CLI::Option*> others;
  for (const PortDriver* driver : gradcube::dataplane::kPortDrivers) {
    std::vector<std::string>& names = options.ports[driver];
    if (driver->option.empty()) continue;
    CLI::Option* option = app.add_option(std::string(driver->option), names, driver->help);
    option->needs(server);
    if (driver->names == PortDriver::Names::together) {
      option->expected(1);
    } else if (driver->separator != '\0') {
      option->delimiter(driver->separator);
    }
    for (CLI::Option* other : others) option->excludes(other);
    others.push_back(option);
  }
}

void add_places(CLI::App& app, Options& options) {
  app.add_option("--run-dir", options.run_dir,
                 "where its control socket and lock are made (default: as gradcube's)");
  app.add_option("--socket-dir", options.socket_dir,
                 "where the trainers' sockets are made (default: the run directory)");
  auto* file = app.add_option("--cluster", options.cluster_file,
                              "the cluster file (TOML), the same for all servers (default: an "
                              "unlimited bcube:3,2)");
  app.add_option("--settings", options.settings,
                 "what `gradcube up` has made of its flags, as JSON, in place of a cluster file")
      ->excludes(file);
}

// Returns how the process is to end now, or nothing.
std::optional<int> read_options(int argc, char** argv, Options& options) {
  CLI::App app{
      "gradcubed runs the servers of a Gradcube cluster. `gradcube up` starts it for you."};
  CLI::Option* server = add_servers(app, options);
  app.add_option(
      "--server-program", options.server_program,
      "with --memif, --veth or --udp: what to run as each server's daemon (default: this "
      "program)");
  add_ports(app, server, options);
  add_places(app, options);
  app.add_option("--ready-fd", options.ready_descriptor,
                 "a pipe that gets a line of JSON when the daemon is ready; the daemon ends if the "
                 "pipe's other end closes before that");
  app.add_option("--parent", options.parent,
                 "the pid of the process that starts this one: the daemon is killed when that "
                 "ends, as a test bed's daemons are");
  app.footer(
      "examples:\n"
      "  gradcubed --all --run-dir /tmp/cube &\n"
      "  GRADCUBE_RUN=/tmp/cube gradcube status\n"
      "  gradcubed --server 2,1 --interfaces eth1,eth2 --cluster cluster.toml\n"
      "  gradcubed --server 2,1 --nics 03:00.0,03:00.1 --cluster cluster.toml\n"
      "  gradcubed --server 2,1 --cluster cluster.toml    # with fabric = \"udp\" and hosts = "
      "[...]\n"
      "  gradcubed --switches 0 --run-dir /tmp/cube/switches-0 --cluster cluster.toml &\n"
      "  gradcubed --server 2,1 --switch-dir /tmp/cube --cluster cluster.toml");
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto end = read_options(argc, argv, options); end.has_value()) return *end;

  log::begin("gradcubed");

  // Before any thread exists, so that all of them leave these signals to the control loop.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody learns how a child has ended
  // Of a file that is longer than `ulimit -f` allows, which may be a trainer's memory: the call
  // that makes it fails.
  signal(SIGXFSZ, SIG_IGN);

  Starter starter(options.ready_descriptor);
  try {
    // The bed has seen to it, but not where this file has capabilities.
    if (options.parent.has_value() && !gradcube::dataplane::die_with(*options.parent)) {
      throw SetupError(fmt::format(
          "--parent {}: that process has not started this one, or has ended", *options.parent));
    }
    starter.begin_watching();
    raise_descriptor_limit();
    return serve(options, starter);
  } catch (const nlohmann::json::exception& error) {
    log::error("--settings: {}", error.what());
    starter.tell({{"ok", false}, {"error", error.what()}});
    return 2;
  } catch (const UsageError& error) {
    log::error("{}", error.what());
    starter.tell({{"ok", false}, {"usage", true}, {"error", error.what()}});
    return 2;
  } catch (const std::exception& error) {
    const std::string what = reason(error);
    log::error("{}", what);
    starter.tell({{"ok", false}, {"error", what}});
    return 1;
  }
}
