#include "cli/up/on_hosts.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "cli/checks/hosts_check.h"
#include "cli/cluster/comes_true.h"
#include "cli/launch/host_group.h"
#include "cli/text/json_fields.h"
#include "cli/text/output.h"
#include "cli/text/package_file.h"
#include "cli/up/own_daemon.h"
#include "control/base/errors.h"
#include "control/settings/cluster_key.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using nlohmann::json;

// A launcher's connection, and a daemon's start.
constexpr auto kStartOnHostPatience = std::chrono::seconds(90);
constexpr auto kEndOnHostPatience = std::chrono::seconds(40);
// Links are heard a little after the last daemon has started.
constexpr auto kFirstGreetings = std::chrono::seconds(10);
constexpr auto kBetweenGreetings = std::chrono::milliseconds(100);
constexpr auto kStatusPatience = std::chrono::seconds(30);
constexpr std::string_view kMayRun =
    "the cluster may still run, on some hosts or all; type `gradcube down` again";
constexpr const char* kDefaultLauncher = "ssh";
constexpr std::size_t kMostProblems = 3;

// "2,1", as gradcubed takes it.
std::string server_word(const ClusterHosts& hosts, std::size_t host) {
  return control::addresses_text(hosts.settings.topology.space(), {hosts.server(host)});
}

// Where small frames alone pass, there is nothing to wait for.
bool hears_all(const json& answer) {
  const json status = json::parse(text_field(answer, "output").value_or(""), nullptr, false);
  for (const json& server : items(status, "servers")) {
    for (const json& port : items(server, "ports")) {
      const json& short_only = items(port, "short_only");
      for (const json& neighbour : items(port, "down")) {
        if (std::find(short_only.begin(), short_only.end(), neighbour) == short_only.end()) {
          return false;
        }
      }
    }
  }
  return true;
}

// Else one end would wait for a link that the other does not measure, because it seems to be down.
void wait_for_greetings(HostGroup& group, const ClusterHosts& hosts) {
  comes_true(kFirstGreetings, kBetweenGreetings, [&] {
    const auto answers = group.ask(json{{"words", {"status", "--json"}}}, kStatusPatience);
    answers.require_all(hosts);
    return std::all_of(answers.values.begin(), answers.values.end(), hears_all);
  });
}

void require_links(const ClusterHosts& hosts, const std::vector<LinkResult>& links) {
  const control::AddressSpace& space = hosts.settings.topology.space();
  std::vector<std::string> problems;
  std::size_t count = 0;
  bool one_is_down = false;
  for (const LinkResult& link : links) {
    one_is_down = one_is_down || link.problem.starts_with("down: ");
    if (link.problem.empty() || ++count > kMostProblems) continue;
    problems.push_back(fmt::format("level {}, {} to {}: {}", link.link.level,
                                   space.text(link.link.first), space.text(link.link.second),
                                   link.problem));
  }
  if (count == 0) return;
  const std::string hint =
      one_is_down && hosts.settings.interfaces.empty()
          ? fmt::format(". A firewall has to let UDP port {} and those above it pass",
                        hosts.settings.hosts.front().front().udp_port)
          : "";
  throw SetupError(fmt::format(
      "{} not as configured: {}{}; what was started on the "
      "hosts was ended, --no-check leaves it running{}",
      links.size() == 1
          ? "the only link is"
          : fmt::format("{} of {} links {}", count, links.size(), count == 1 ? "is" : "are"),
      fmt::join(problems, "; "), count > kMostProblems ? "; ..." : "", hint));
}

}  // namespace

ClusterHosts hosts_reached(const std::string& launcher, const std::string& program,
                           std::vector<std::string> names,
                           const control::ClusterSettings& settings) {
  std::random_device random;
  ClusterHosts hosts{.cluster = fmt::format("{:08x}{:08x}", random(), random()),
                     .launcher = launcher.empty() ? kDefaultLauncher : launcher,
                     .program = program.empty() ? own_program().string() : program,
                     .names = std::move(names),
                     .settings = settings};
  validate(hosts);
  return hosts;
}

HostsStarted up_on_hosts(const ClusterHosts& hosts, const RunDirectory& directory,
                         bool with_check) {
  prepare(directory, StartLock(directory));
  refuse_cluster_elsewhere(directory);
  // Where the settings name no key, one is made, which the launcher's connections bring.
  const bool brings_key = hosts.settings.authentication == control::Authentication::key &&
                          hosts.settings.key_file.empty();
  const std::string key = brings_key ? control::key_text(control::draw_secret()) : "";
  std::vector<json> requests;
  for (std::size_t host = 0; host < hosts.names.size(); ++host) {
    json start = {{"server", server_word(hosts, host)},
                  {"host", hosts.names[host]},
                  {"hosts", hosts_json(hosts)}};
    if (brings_key) start["key"] = key;
    requests.push_back({{"start", start}});
  }
  HostsStarted started;
  std::optional<HostGroup> group(std::in_place, hosts);
  const HostGroup::Answers answers = group->ask(requests, kStartOnHostPatience);
  answers.require_all(hosts);
  started.daemons = answers.values;
  wait_for_greetings(*group, hosts);
  if (with_check) {
    started.links = check_hosts(*group, hosts, LinkCheckSettings());
    require_links(hosts, started.links);
  }
  try {
    group->stay();
    keep_cluster_hosts(directory, hosts);
  } catch (const std::exception& error) {
    std::string why = error.what();
    const int signal = group->interrupted_by();
    group.reset();
    try {
      down_on_hosts(hosts, directory);
      why += "; what was started on the hosts was ended";
    } catch (const std::exception& other) {
      why += fmt::format("; not all that was started was ended: {}", other.what());
    }
    if (signal != 0) {
      complain(why);
      raise(signal);
    }
    throw SetupError(why);
  }
  return started;
}

void refuse_cluster_elsewhere(const RunDirectory& directory) {
  const auto hosts = kept_cluster_hosts(directory);
  if (!hosts) return;
  throw SetupError(
      fmt::format("a cluster on {} may run: `gradcube down` ends it. Where those hosts are gone "
                  "for ever, remove {}",
                  fmt::join(hosts->names, ", "), kept_hosts_file(directory).string()));
}

void down_on_hosts(const ClusterHosts& hosts, const RunDirectory& directory) {
  HostGroup group(hosts, HostGroup::kGrace, kMayRun);
  // This host last: with its daemon goes what a later try would find the others by.
  const auto end = [&](bool here) {
    std::vector<json> requests;
    for (const std::size_t host : hosts.all()) {
      const bool now = is_of_this_host(hosts.address(host)) == here;
      requests.push_back(
          {{"words", now ? json{"down"} : json::array()}, {"cluster", hosts.cluster}});
    }
    return group.ask(requests, kEndOnHostPatience);
  };
  HostGroup::Answers answers = end(false);
  HostGroup::Answers last = end(true);
  for (const std::size_t host : hosts.all()) {
    if (!is_of_this_host(hosts.address(host))) continue;
    answers.values[host] = std::move(last.values[host]);
    answers.failures[host] = std::move(last.failures[host]);
  }
  // One that has ended before is as well; what another `up` has started there is let be.
  answers.note_failed_commands(kNothingToEnd);
  // For another try. On this host, too, it has been removed.
  const auto failed = [](const std::string& failure) { return !failure.empty(); };
  if (std::any_of(answers.failures.begin(), answers.failures.end(), failed)) {
    keep_cluster_hosts(directory, hosts);
  } else {
    forget_cluster_hosts(directory);
  }
  answers.require_all(hosts);
}

}  // namespace gradcube::cli
