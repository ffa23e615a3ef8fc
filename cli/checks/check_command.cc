#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <string>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "cli/checks/hosts_check.h"
#include "cli/checks/link_check.h"
#include "cli/cluster/cluster_hosts.h"
#include "cli/cluster/interrupt.h"
#include "cli/launch/host_group.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/progress_line.h"
#include "control/base/errors.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

constexpr double kShortestCheck = 0.1;  // seconds
constexpr double kLongestCheck = 3600;
constexpr double kShortestRoundTrip = 1e-6;
constexpr double kLongestRoundTrip = 60;

struct CheckOptions {
  LinkCheckSettings settings;
  double timeout_seconds = 10;
  bool all = false;
  bool json = false;
};

int check_all_hosts(const ClusterHosts& hosts, const CheckOptions& options) {
  HostGroup group(hosts);
  const std::vector<LinkResult> results = check_hosts(group, hosts, options.settings);
  hosts_check_report(hosts, results, options.all).write(options.json);
  flush_output();  // the hosts may take a while to end
  return all_right(results) ? 0 : kExitFailure;
}

int run_check(CheckOptions options) {
  options.settings.timeout = std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.timeout_seconds));
  const bool named = !options.settings.job.empty();
  if (options.settings.job.size() > kLongestLinkCheckJob) {
    throw control::UsageError(
        fmt::format("--job: {} characters; expected at most {}, as each link's job adds to it",
                    options.settings.job.size(), kLongestLinkCheckJob));
  }
  if (!named) options.settings.job = fmt::format("check-{}", getpid());
  const auto directory = control::RunDirectory::from_environment();
  if (const auto hosts = hosts_to_ask(directory)) return check_all_hosts(*hosts, options);
  const InterruptGuard interrupt;
  const LinkCheck check(directory, options.settings);
  if (check.others_are_elsewhere() && !named) {
    throw control::UsageError(fmt::format(
        "{} of the cluster's {} servers are on this host: run this command on all of their hosts, "
        "with the same --job NAME",
        check.cluster().sockets.size(), check.cluster().topology.servers()));
  }
  std::vector<LinkResult> results;
  {
    std::atomic<std::size_t> done = 0;
    const ProgressLine progress(
        [&] { return fmt::format("{} of {} rounds", done.load(), check.rounds().size()); });
    for (const auto& round : check.rounds()) {
      const std::vector<LinkResult> more = check.run(round);
      results.insert(results.end(), more.begin(), more.end());
      ++done;
    }
  }
  std::sort(results.begin(), results.end(), [](const LinkResult& a, const LinkResult& b) {
    return std::tie(a.link.level, a.link.first, a.link.second) <
           std::tie(b.link.level, b.link.first, b.link.second);
  });
  Report report = links_report(check.cluster().topology, results, options.all);
  if (!check.cluster().shared_address.empty()) {
    report.line(check.cluster().shared_address +
                ", and so what its NIC carries; here they were measured one after the other");
  }
  if (check.cluster().unauthenticated) {
    report.line("frames are not authenticated: whoever can send some can change results");
  }
  report.write(options.json);
  return all_right(results) ? 0 : kExitFailure;
}

void add_options(CLI::App* command, CheckOptions* options) {
  command
      ->add_option("--least-rate", options->settings.least_rate,
                   "What the payload must reach of the configured rate, 0 to 1")
      ->check(number_in(0, 1))
      ->capture_default_str();
  command
      ->add_option("--most-lost", options->settings.most_lost,
                   "The share of segments that may be lost, 0 to 1")
      ->check(number_in(0, 1))
      ->capture_default_str();
  command
      ->add_option("--most-round-trip", options->settings.most_round_trip_seconds,
                   "Time that a round trip may take, 50us, or plain seconds; any if not given")
      ->transform(seconds_in(kShortestRoundTrip, kLongestRoundTrip));
  command
      ->add_option("--timeout", options->timeout_seconds,
                   "Seconds to wait for one all-reduce over a link")
      ->transform(seconds_in(kShortestCheck, kLongestCheck))
      ->capture_default_str();
  command
      ->add_option("--job", options->settings.job,
                   "What the names of the jobs begin with; needed where servers are on several "
                   "hosts, the same on all")
      ->check(job_name());
  command->add_flag("--all", options->all, "List all links, however many there are");
  command->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace

void add_check(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "check", "Measure every link between neighbours against what is configured");
  auto& options = options_of<CheckOptions>(command, action, run_check);
  add_options(command, &options);
  command->footer(
      "The first thing to run on a new cluster. Each link carries frames of the cluster's MTU at\n"
      "its rate in both directions for about half a second, level by level, at the same time on\n"
      "links that share no server, 16 at most. The exit code is 1 if a link is down, cabled or\n"
      "set wrongly, slow or lossy.\n"
      "Where `up` has started the daemons of several hosts, it checks the links of all. Where\n"
      "they were started by hand, run the same command on all of them with the same --job, by\n"
      "any launcher; each prints the links of its servers.\n"
      "Examples:\n"
      "  gradcube check\n"
      "  gradcube check --least-rate 0.9 --most-round-trip 1ms\n"
      "  gradcube check --json | jq '.links[] | select(.problem)'\n"
      "  gradcube check --job first        on every host, where its daemon was started by hand");
}

}  // namespace gradcube::cli
