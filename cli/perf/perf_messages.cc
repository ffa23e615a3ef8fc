// `gradcube perf sendrecv`: measures messages from one trainer of the running cluster to another.
// The bound is what the paths that the message takes carry together, each at the rate of its
// slowest link.
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <vector>

#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/running_cluster.h"
#include "cli/measure/harness.h"
#include "cli/measure/measure_messages.h"
#include "cli/perf/perf_commands.h"
#include "cli/perf/perf_options.h"
#include "cli/perf/perf_report.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/plan/base/topology_links.h"
#include "control/settings/run_directory.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {
namespace {

using control::Rank;
using control::RunDirectory;
using control::UsageError;

constexpr unsigned kMostPaths = 8;  // as gradcube_message::paths

// What the command line says. Without a receiver it is the last rank.
struct AskedEnds {
  control::Rank from = 0;
  std::optional<control::Rank> to;
  unsigned paths = 0;  // at most; 0: by length
};

struct MessageOptions : JobOptions {
  SizeOptions sizes;
  AskedEnds ends;
  PerfSettings settings;  // what needs no more than parsing
};

void print_foot(const PerfSettings& settings, std::uint64_t wrong) {
  if (!settings.check) return;
  if (wrong == 0) {
    print("# every byte was received as it was sent\n");
  } else {
    print("# {} bytes are WRONG\n", wrong);
  }
}

// Throws UsageError: a rank that there is not.
MessageEnds message_ends_of(const AskedEnds& asked, const control::Placement& placement) {
  const Rank last = placement.trainers() - 1;
  const auto require = [last](Rank rank, std::string_view flag) {
    if (rank <= last) return rank;
    throw UsageError(fmt::format("{}: there is no rank {}; expected 0 to {}", flag, rank, last));
  };
  return {.from = require(asked.from, "--from"),
          .to = require(asked.to.value_or(last), "--to"),
          .paths = asked.paths};
}

// Throws UsageError where the two are farther apart than a frame may go.
void require_way(const control::Topology& topology, const control::Placement& placement,
                 const MessageEnds& ends) {
  const control::AddressSpace& space = topology.space();
  const control::ServerId from = placement.place(ends.from).server;
  const control::ServerId to = placement.place(ends.to).server;
  if (from == to || !bcube::message_paths(space, from, to).empty()) return;
  throw UsageError(fmt::format(
      "--to: ranks {} and {} are on {} and {}, which are {} hops apart, and a message takes at "
      "most {}; expected ranks that are nearer, or a topology of more levels",
      ends.from, ends.to, space.text(from), space.text(to), bcube::distance(space, from, to),
      bcube::most_hops(space)));
}

// What a message of so many bytes takes.
struct MessageWay {
  unsigned paths = 0;              // 0: both trainers are on one server
  std::optional<double> rate_bps;  // of all paths together; nothing where no rate is known
};
MessageWay way_of(const control::Topology& topology, const control::Placement& placement,
                  const MessageEnds& ends, std::uint64_t bytes) {
  const control::ServerId from = placement.place(ends.from).server;
  const control::ServerId to = placement.place(ends.to).server;
  if (from == to) return {};
  std::vector<bcube::Route> paths = bcube::message_paths(topology.space(), from, to);
  const std::size_t most = ends.paths != 0                 ? ends.paths
                           : bytes < shared::kLargeMessage ? 1
                                                           : kMostPaths;
  paths.resize(std::min(paths.size(), most));
  MessageWay way;
  way.paths = static_cast<unsigned>(paths.size());
  double rate = 0;
  for (const bcube::Route& path : paths) {
    std::uint64_t slowest = UINT64_MAX;
    control::ServerId at = from;
    for (const bcube::Hop& hop : path) {
      const control::ServerId next = topology.space().with_digit(at, hop.level, hop.digit);
      slowest = std::min(slowest, control::hop_bps(topology, at, next, hop.level));
      at = next;
    }
    rate += static_cast<double>(slowest);
  }
  // Rails share the ports of the server that has fewer.
  for (const control::ServerId end : {from, to}) {
    if (topology.space().rails() == 1) break;
    rate = std::min(rate,
                    static_cast<double>(topology.space().ports(end) * topology.port_bps(end, 0)));
  }
  if (rate > 0) way.rate_bps = rate;
  return way;
}

int run_perf_messages(const MessageOptions& options) {
  PerfSettings settings = options.settings;
  apply_job_options(options, settings);
  const std::vector<std::uint64_t> sizes = sizes_of(options.sizes);
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const RunningCluster running = running_cluster(directory);
  const auto placement =
      placement_of(running, {}, "").with_trainers(settings.trainers, "--trainers");
  const MessageEnds ends = message_ends_of(options.ends, placement);
  require_way(running.topology, placement, ends);
  require_daemons(running, placement);
  const std::vector<PerfTrainer> trainers = trainers_of(running, placement);
  if (trainers.size() != placement.trainers()) {
    throw control::SetupError(
        fmt::format("{} of the cluster's {} servers are on this host: perf sendrecv needs all of "
                    "them",
                    trainers.size() / settings.trainers, placement.ranks()));
  }
  const std::string job = options.job_name("perf");
  Harness harness(trainers, placement.trainers(), job, settings);
  Report report;
  report.fact("topology", control::topology_json(running.topology));
  report.fact("rate_bps", running.rate_bps);
  report.fact("collective", "sendrecv");
  report.fact("from", ends.from);
  report.fact("to", ends.to);
  std::vector<ReportColumn> columns = perf_columns();
  columns.push_back({{}, "paths"});
  PerfTable table(directory, placement, report.table("results", std::move(columns)), !options.json,
                  fmt::format("# sendrecv from {} to {}, {}, {}, {}, job {}\n", ends.from, ends.to,
                              running.topology.spec(), control::servers_text(running.topology),
                              rates_text(running), job));
  for (const std::uint64_t size : sizes) {
    table.add(
        [size] { return fmt::format("messages of {}", human_bytes(static_cast<double>(size))); },
        [&] { return measure_messages(harness, settings, ends, size); },
        [&](const PerfRow& row) {
          const MessageWay way = way_of(running.topology, placement, ends, size);
          std::vector<Cell> cells = perf_cells(row, {2, 1.0, way.rate_bps});
          cells.push_back(cell::told(way.paths));
          return cells;
        });
  }
  if (options.json) {
    report.write(true);
  } else {
    print_foot(settings, table.wrong());
  }
  flush_output();
  return table.wrong() == 0 ? 0 : kExitFailure;
}

}  // namespace

void add_perf_messages(CLI::App& perf, Action& action) {
  CLI::App* command = perf.add_subcommand("sendrecv", "Measure messages from one rank to another")
                          ->ignore_underscore()
                          ->alias("send-recv");
  auto& options = options_of<MessageOptions>(command, action, run_perf_messages);
  add_size_options(command, options.sizes);
  add_number(command, "--from", options.ends.from, 0, kMostRank, "The rank that sends");
  command->add_option("--to", options.ends.to, "The rank that receives (default: the last one)")
      ->check(whole_number_in(0, kMostRank));
  command
      ->add_option("--paths", options.ends.paths,
                   "The most paths that a message may take (default: one, or all from 64 KiB on)")
      ->check(whole_number_in(1, kMostPaths));
  add_number(command, "--in-flight", options.settings.in_flight, 1, kMostInFlight,
             "Messages at once");
  add_job_options(command, options, options.settings);
  command->add_flag("--check", options.settings.check,
                    "Compare every byte that was received with what was sent");
  command->footer(kSeePerf);
}

}  // namespace gradcube::cli
