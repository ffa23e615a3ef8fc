#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/checks/hosts_check.h"
#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/control_client.h"
#include "cli/cluster/daemon_process.h"
#include "cli/cluster/settings_options.h"
#include "cli/launch/host_group.h"
#include "cli/status/status_text.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/progress_line.h"
#include "cli/text/report.h"
#include "cli/up/hosts_option.h"
#include "cli/up/on_hosts.h"
#include "cli/up/own_daemon.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/settings/cluster_file.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/host_list.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::ClusterSettings;
using control::RunDirectory;
using control::SetupError;

struct UpOptions {
  SettingsOptions settings;
  std::string cluster_file;
  std::string launcher;
  std::string program;
  bool no_check = false;
  bool json = false;
};

// What every network between hosts carries.
constexpr unsigned kMtuBetweenHosts = 1500;

// What is to be started: on several hosts where `hosts` has names.
struct Wanted {
  ClusterSettings settings;
  std::vector<std::string> hosts;
};

// What --hosts says of the rest, unless that is said: one address is a NIC under a switch.
void apply_hosts(const UpOptions& options, const NamedHosts& named, ClusterSettings& settings) {
  if (named.names.empty()) return;
  if (options.cluster_file.empty() && !options.settings.given("topology")) {
    control::apply_topology(settings, fmt::format("star:{}", named.names.size()), "--hosts");
  }
  const bool has_cables = options.settings.given("interfaces") || !settings.interfaces.empty();
  if (!options.settings.given("fabric") && !has_cables) {
    settings.fabric = control::FabricKind::udp;
  }
}

bool are_elsewhere(const control::HostList& hosts) {
  return std::any_of(hosts.begin(), hosts.end(), [](const control::HostRow& row) {
    return !is_of_this_host(control::ip_text(row.front()));
  });
}

void choose_hosts(const UpOptions& options, const NamedHosts& named, Wanted& wanted) {
  const bool launched = !options.launcher.empty() || !options.program.empty();
  if (launched && wanted.settings.hosts.empty()) {
    throw control::UsageError(
        "--launcher, --program: they are for several hosts; expected --hosts as well, or hosts in "
        "the cluster file");
  }
  const bool has_cables = !wanted.settings.interfaces.empty();
  if (!launched && !has_cables && !are_elsewhere(wanted.settings.hosts)) return;
  wanted.hosts = named.names.empty() ? host_names(wanted.settings.hosts) : named.names;
  if (options.cluster_file.empty() && !options.settings.given("mtu")) {
    wanted.settings.mtu = kMtuBetweenHosts;
  }
}

Wanted read_wanted(const UpOptions& options) {
  Wanted wanted;
  ClusterSettings& settings = wanted.settings;
  if (!options.cluster_file.empty()) settings = control::read_cluster_file(options.cluster_file);
  SettingsOptions flags = options.settings;
  NamedHosts named;
  if (flags.given("hosts")) {
    named = read_hosts_option(std::string(flags.text("hosts")));
    flags.replace("hosts", named.addresses);
  }
  apply_hosts(options, named, settings);
  flags.apply(settings);
  choose_hosts(options, named, wanted);
  control::validate(settings);
  // A topology without a plan must be refused here, before anything is started.
  const control::Topology topology = settings.rated_topology();
  const auto placement = control::place_on_trainers_servers(topology, settings.aggregators);
  control::make_plan(control::default_algorithm(topology, placement), topology, placement,
                     "--topology");
  return wanted;
}

// Progress on standard error, where a failure to write must not keep a cluster from starting.
template <typename... Values>
void report(fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

pid_t start(const RunDirectory& directory, const ClusterSettings& settings) {
  const std::string what = fmt::format("starting {}: {}", settings.topology.spec(),
                                       control::servers_text(settings.topology));
  if (isatty(STDERR_FILENO) != 1) report("{} ...\n", what);
  const ProgressLine progress([&what] { return what; }, std::chrono::milliseconds(0));
  return start_daemon(directory, daemon_of(settings));
}

// The cluster is up, whether or not anybody can read it.
void tell_up(const Report& report, bool as_json) {
  try {
    report.write(as_json);
    flush_output();
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("{}; the cluster is up: `gradcube down` ends it", error.what()));
  }
}

Report up_report(const RunDirectory& directory, pid_t pid, const nlohmann::json& status) {
  Report report;
  report.fact("ok", true);
  report.fact("pid", pid);
  report.fact("run_directory", directory.path().string());
  report.fact("log", directory.log_file().string());
  report.fact("status", status);
  report.line(
      fmt::format("{}{:<12}  {}\n\n"
                  "the cluster is up; next:\n"
                  "  gradcube perf allreduce --sizes 1K,64K,12.5M --check\n"
                  "  gradcube status\n"
                  "  gradcube down",
                  status_summary(status), "directory", directory.path().string()));
  return report;
}

Report up_on_hosts_report(const ClusterHosts& hosts, const HostsStarted& started, bool with_check) {
  Report report;
  report.fact("ok", true);
  report.line(fmt::format("{} on {} hosts, by {}", hosts.settings.topology.spec(),
                          hosts.names.size(), hosts.launcher));
  ReportTable& table = report.table("hosts", {{"host", "name", Align::left},
                                              {"server", "server"},
                                              {"address", "address", Align::left},
                                              {"pid", "pid"},
                                              {"run directory", "run_directory", Align::left},
                                              {{}, "log"}});
  const control::AddressSpace& space = hosts.settings.topology.space();
  for (std::size_t host = 0; host < hosts.names.size(); ++host) {
    const nlohmann::json& daemon = started.daemons[host];
    table.add({hosts.names[host],
               {space.text(hosts.server(host)), control::address_json(space, hosts.server(host))},
               hosts.address(host),
               {id_text(daemon, "pid"), field(daemon, "pid")},
               cell_text(daemon, "run_directory"),
               cell_text(daemon, "log")});
  }
  if (with_check) {
    const Report check = hosts_check_report(hosts, started.links, false);
    report.fact("check", check.json());
    report.line("\n" + check.text());
  }
  report.line(
      "the cluster is up; next, on any of these hosts:\n"
      "  gradcube run -- python3 train.py\n"
      "  gradcube status\n"
      "  gradcube down");
  return report;
}

int run_up_on_hosts(const UpOptions& options, const Wanted& wanted) {
  const ClusterHosts hosts =
      hosts_reached(options.launcher, options.program, wanted.hosts, wanted.settings);
  const RunDirectory directory = RunDirectory::from_environment();
  report("starting {} on {} hosts by {} ...\n", hosts.settings.topology.spec(), hosts.names.size(),
         hosts.launcher);
  const HostsStarted started = up_on_hosts(hosts, directory, !options.no_check);
  tell_up(up_on_hosts_report(hosts, started, !options.no_check), options.json);
  return 0;
}

int run_up(const UpOptions& options) {
  const Wanted wanted = read_wanted(options);
  if (!wanted.hosts.empty()) return run_up_on_hosts(options, wanted);
  const ClusterSettings& settings = wanted.settings;
  const RunDirectory directory = RunDirectory::from_environment();
  if (const std::size_t stale = prepare(directory, StartLock(directory)); stale > 0) {
    report("removed {} sockets of a daemon that did not end in good order; its log: {}\n", stale,
           directory.old_log_file().string());
  }
  refuse_cluster_elsewhere(directory);
  forget_cluster_hosts(directory);
  const pid_t pid = start(directory, settings);
  tell_up(up_report(directory, pid, ask_status(directory)), options.json);
  return 0;
}

}  // namespace

void add_up(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "up", "Start a cluster and return when it is ready: on this host, or on several");
  auto& options = options_of<UpOptions>(command, action, run_up);
  options.settings.add_all(command);
  command->get_option("--hosts")->description(
      "The hosts of the servers, [0,0] first: node1,node2,node3, or a file with a host in each "
      "line (docs/hosts.md); of a server with several addresses, one for each port: "
      "\"10.0.0.1,10.1.0.1 ...\". Sets --fabric udp and --topology star:N (default: all servers "
      "on this host)");
  add_text(command, "--cluster", options.cluster_file, "A cluster file (TOML); flags override it");
  add_text(command, "--launcher", options.launcher,
           "With --hosts, how they are reached: ssh, srun, mpirun, or a command with {host} in it "
           "(default: ssh, which asks for no password)");
  add_text(command, "--program", options.program,
           "With --hosts, the path of gradcube on them (default: that of this one)");
  command->add_flag("--no-check", options.no_check,
                    "With --hosts, leave the cluster running whatever its links are like");
  command->add_flag("--json", options.json, "Print one JSON object");
  command->footer(
      "Needs no root, no huge pages and no NIC, but --fabric veth needs root and iproute2. K, M\n"
      "and G are decimal, Ki, Mi and Gi binary.\n"
      "Examples:\n"
      "  gradcube up --topology bcube:3,2\n"
      "  gradcube up --topology bcube:3,2 --rate 200mbit --mtu 9000 --loss 0.001\n"
      "  gradcube up --topology bcube:3,2 --fabric memif --rate 200mbit   a daemon per server\n"
      "  gradcube up --topology bcube:3,2 --fabric veth --rate 100mbit    the same on real links\n"
      "  gradcube up --topology star:3 --fabric udp                       the same by datagrams\n"
      "  gradcube up --topology bcube:4,2 --absent \"3,1 3,2 3,3\"           13 of 16 servers\n"
      "  gradcube up --topology star:9 --aggregators 8                     8 workers and a PBox\n"
      "  gradcube up --cluster cluster.toml --seed 7\n"
      "On several hosts, each with Gradcube and reached by ssh without a password "
      "(docs/hosts.md):\n"
      "  gradcube up --hosts node1,node2,node3                     a star of them, by udp\n"
      "  gradcube up --hosts hosts.txt --rate 10gbit               a host in each line\n"
      "  gradcube up --hosts hosts.txt --launcher 'ssh -p 2222 {host}'\n"
      "  gradcube up --hosts n1,n2,n3,n4 --topology bcube:2,2 --launcher srun");
}

}  // namespace gradcube::cli
