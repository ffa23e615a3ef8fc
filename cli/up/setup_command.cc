// `gradcube setup`: finds out how the ports of some hosts are cabled, and writes the cluster file.
//

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "cli/setup/cables.h"
#include "cli/setup/recognise.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "cli/up/find_cables.h"
#include "cli/up/hosts_option.h"
#include "cli/up/on_hosts.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/system_error.h"
#include "control/settings/cluster_file.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/host_list.h"

namespace gradcube::cli {
namespace {

using control::SetupError;
using control::UsageError;

constexpr std::size_t kMostFaults = 20;
constexpr double kLongestWait = 600;

struct SetupOptions {
  std::string hosts;
  std::string launcher;
  std::string program;
  std::vector<std::string> interfaces;
  std::string topology;
  std::string file = "cluster.toml";
  double wait_seconds = 5;
  bool up = false;
  bool json = false;
};

std::string hosts_file(const SetupOptions& options) {
  return std::filesystem::path(options.file).replace_extension(".hosts").string();
}

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + control::shell_word(word);
  }
  return text;
}

std::vector<std::string> up_words(const SetupOptions& options) {
  std::vector<std::string> words{"gradcube",   "up",      "--cluster",
                                 options.file, "--hosts", hosts_file(options)};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--launcher", options.launcher);
  add("--program", options.program);
  if (options.json) words.emplace_back("--json");
  return words;
}

// What `setup` has found before, for its message where it is typed again.
std::string found_before(const SetupOptions& options) {
  std::error_code ignored;
  for (const std::string& path : {options.file, hosts_file(options)}) {
    if (!std::filesystem::exists(path, ignored)) return "";
  }
  return fmt::format(". `{}` starts what they describe",
                     control::printable(shell_text(up_words(options))));
}

// Before the hosts are asked, which may take minutes.
void refuse_files_that_cannot_be_made(const SetupOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.file).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    throw UsageError(
        fmt::format("--out {}: nothing can be written in {}: {}", control::quoted(options.file),
                    folder.empty() ? "this folder" : control::printable(folder.string()),
                    std::strerror(errno)));
  }
  for (const std::string& path : {options.file, hosts_file(options)}) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    throw UsageError(fmt::format("--out {}: {} is there already: remove it, or name another file{}",
                                 control::quoted(options.file), control::printable(path),
                                 found_before(options)));
  }
}

// The one that is asked for; else the first.
const Proposal* choose_proposal(const Recognised& recognised, const std::string& topology) {
  if (recognised.proposals.empty()) return nullptr;
  if (topology.empty()) return &recognised.proposals.front();
  const std::string wanted = control::parse_topology(topology, "--topology").spec();
  std::vector<std::string> specs;
  for (const Proposal& proposal : recognised.proposals) {
    if (proposal.topology.spec() == wanted) return &proposal;
    specs.push_back(proposal.topology.spec());
  }
  throw SetupError(
      fmt::format("these hosts are not cabled as {}, but as {}", wanted, fmt::join(specs, " or ")));
}

std::string hears_text(const Cables& cables, HostPort at) {
  std::vector<std::string> heard;
  for (const auto& [hears, from] : cables.heard) {
    if (hears == at) heard.push_back(cables.text(from));
  }
  if (!heard.empty()) return fmt::format("{}", fmt::join(heard, ", "));
  const PortFacts& port = cables.hosts[at.host].ports[at.port];
  return !port.is_up ? "(down)" : port.has_carrier ? "(nobody)" : "(no carrier)";
}

// Where each port of each host is in the topology, "[2,1] port 0".
std::map<HostPort, std::string> places_of(const Proposal& proposal) {
  std::map<HostPort, std::string> places;
  for (control::ServerId server = 0; server < proposal.hosts.size(); ++server) {
    for (unsigned port = 0; port < proposal.ports[server].size(); ++port) {
      places[{proposal.hosts[server], proposal.ports[server][port]}] =
          fmt::format("{} port {}", proposal.topology.space().text(server), port);
    }
  }
  return places;
}

void draw_ports(const Cables& cables, const Proposal* proposal, Report& report) {
  ReportTable& table = report.table("ports", {{"host", "host", Align::left},
                                              {"port", "interface", Align::left},
                                              {"MTU", "mtu"},
                                              {"is", "place", Align::left},
                                              {"hears", "hears", Align::left}});
  const auto places =
      proposal == nullptr ? std::map<HostPort, std::string>() : places_of(*proposal);
  for (std::size_t host = 0; host < cables.hosts.size(); ++host) {
    const CabledHost& own = cables.hosts[host];
    for (std::size_t port = 0; port < own.ports.size(); ++port) {
      const auto place = places.find({host, port});
      table.add({own.name, own.ports[port].name, cell::plain(own.ports[port].mtu),
                 place == places.end() ? cell::none() : Cell(place->second),
                 hears_text(cables, {host, port})});
    }
  }
}

unsigned least_mtu(const Cables& cables, const Proposal& proposal) {
  unsigned mtu = control::kMaxMtu;
  for (std::size_t server = 0; server < proposal.hosts.size(); ++server) {
    for (const std::size_t port : proposal.ports[server]) {
      mtu = std::min(mtu, cables.hosts[proposal.hosts[server]].ports[port].mtu);
    }
  }
  return mtu;
}

std::string cluster_text(const ClusterHosts& hosts, const Cables& cables,
                         const Proposal& proposal) {
  std::string addresses;
  std::string interfaces;
  for (control::ServerId server = 0; server < proposal.hosts.size(); ++server) {
    const std::size_t host = proposal.hosts[server];
    const std::string who = proposal.topology.space().text(server) + " " + hosts.names[host];
    std::vector<std::string> names;
    for (const std::size_t port : proposal.ports[server]) {
      names.push_back('"' + cables.hosts[host].ports[port].name + '"');
    }
    addresses += fmt::format("  \"{}\",  # {}\n",
                             control::host_text(hosts.settings.hosts[host].front()), who);
    interfaces += fmt::format("  [{}],  # {}\n", fmt::join(names, ", "), who);
  }
  return fmt::format(
      "# By `gradcube setup`: how these hosts' ports are cabled. The same file for all of them.\n"
      "[topology]\nspec = \"{}\"\nhosts = [\n{}]\ninterfaces = [\n{}]\n[link]\nmtu = {}\n",
      proposal.topology.spec(), addresses, interfaces, least_mtu(cables, proposal));
}

std::string hosts_file_text(const ClusterHosts& hosts, const Proposal& proposal) {
  std::string text = "# By `gradcube setup`: how the hosts are reached, in their servers' order.\n";
  for (const std::size_t host : proposal.hosts) {
    text += fmt::format("{} {}\n", hosts.names[host],
                        control::host_text(hosts.settings.hosts[host].front()));
  }
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw control::system_error("cannot write {}", control::printable(path));
}

void tell_faults(const Recognised& recognised, Report& report) {
  report.fact("ok", false);
  report.fact("faults", recognised.faults);
  report.line("\nthese cables form no star, ring, torus or BCube:");
  for (std::size_t i = 0; i < recognised.faults.size(); ++i) {
    if (i == kMostFaults) {
      report.line(fmt::format("  and {} more", recognised.faults.size() - i));
      break;
    }
    report.line("  " + recognised.faults[i]);
  }
}

void tell_proposal(const SetupOptions& options, const Recognised& recognised,
                   const Proposal& proposal, Report& report) {
  std::vector<std::string> others;
  for (const Proposal& other : recognised.proposals) {
    if (&other != &proposal) others.push_back(other.topology.spec());
  }
  report.fact("ok", true);
  report.fact("topology", proposal.topology.spec());
  report.fact("alternatives", others);
  report.fact("cluster_file", options.file);
  report.fact("hosts_file", hosts_file(options));
  report.line(fmt::format("\n{} is in {}, and how its hosts are reached in {}",
                          proposal.topology.spec(), options.file, hosts_file(options)));
  if (!others.empty()) {
    report.line(fmt::format("also possible: --topology {}", fmt::join(others, ", ")));
  }
  if (!proposal.uses_all) report.line("it does not use all cables: those of ports marked -");
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  throw control::system_error("cannot start `{}`", shell_text(words));
}

int run_setup(const SetupOptions& options) {
  refuse_files_that_cannot_be_made(options);
  const NamedHosts named = read_hosts_option(options.hosts);
  control::ClusterSettings settings;
  control::apply_topology(settings, fmt::format("star:{}", named.names.size()), "--hosts");
  settings.hosts = control::parse_hosts(named.addresses, "--hosts");
  settings.fabric = control::FabricKind::udp;  // until it is known what they are
  control::validate(settings);
  const ClusterHosts hosts =
      hosts_reached(options.launcher, options.program, named.names, settings);
  const FoundCables found = find_cables(hosts, options.interfaces, options.wait_seconds);
  const Proposal* const proposal = choose_proposal(found.recognised, options.topology);
  Report report;
  draw_ports(found.cables, proposal, report);
  if (proposal == nullptr) {
    tell_faults(found.recognised, report);
    report.write(options.json);
    return kExitFailure;
  }
  const std::string text = cluster_text(hosts, found.cables, *proposal);
  control::parse_cluster_file(text, options.file);
  write_file(options.file, text);
  write_file(hosts_file(options), hosts_file_text(hosts, *proposal));
  tell_proposal(options, found.recognised, *proposal, report);
  if (!options.up) {
    report.line("next, to start it and measure every link:\n  " + shell_text(up_words(options)));
  }
  if (!options.up || !options.json) report.write(options.json);
  flush_output();
  if (options.up) become(up_words(options));
  return 0;
}

}  // namespace

void add_setup(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "setup", "Find out how hosts are cabled to each other, and write their cluster file");
  auto& options = options_of<SetupOptions>(command, action, run_setup);
  add_text(command, "--hosts", options.hosts,
           "The hosts, in any order: node1,node2,node3, or a file with a host in each line, as "
           "`up` takes them")
      ->required();
  command
      ->add_option("--interfaces", options.interfaces,
                   "The interfaces to use, on each host: eth1,eth2 (default: all Ethernet "
                   "interfaces that have no IP address)")
      ->delimiter(',')
      ->check(not_empty());
  add_text(command, "--topology", options.topology,
           "Where the cables allow several, the one to take (default: the first)");
  add_text(command, "--out", options.file,
           "The cluster file to write; beside it comes one that ends with .hosts");
  command->add_option("--wait", options.wait_seconds, "Seconds to wait for ports that hear nobody")
      ->transform(seconds_in(0, kLongestWait))
      ->capture_default_str();
  add_text(command, "--launcher", options.launcher, "How the hosts are reached, as of `up`");
  add_text(command, "--program", options.program, "The path of gradcube on them, as of `up`");
  command->add_flag("--up", options.up, "Go on with `up`: start the cluster, measure its links");
  command->add_flag("--json", options.json, "Print one JSON object");
  command->footer(
      "Greets out of every port of every host, shows who hears whom, and says which server of\n"
      "which topology each host is: a star, ring, torus or BCube. Where the cables form none it\n"
      "says why, cable by cable, and writes nothing. It needs root on the hosts, or CAP_NET_RAW.\n"
      "Examples:\n"
      "  gradcube setup --hosts node1,node2,node3 --up\n"
      "  gradcube setup --hosts hosts.txt --interfaces eth1,eth2 --out cube.toml\n"
      "  gradcube setup --hosts node1,node2,node3,node4 --topology torus:4,1");
}

}  // namespace gradcube::cli
