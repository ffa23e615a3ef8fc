#include "cli/perf/perf_messages.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/running_cluster.h"
#include "cli/perf/measured_row.h"
#include "cli/perf/perf_report.h"
#include "cli/text/command.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/plan/base/topology_links.h"
#include "control/settings/run_directory.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {
namespace {

using control::Rank;
using control::RunDirectory;
using control::UsageError;

constexpr unsigned kMostPaths = 8;  // as gradcube_message::paths

void refuse(std::string_view flag, bool given) {
  if (!given) return;
  throw UsageError(
      fmt::format("{}: a message is no collective; expected perf sendrecv without it", flag));
}

void print_foot(const PerfSettings& settings, std::uint64_t wrong) {
  if (!settings.check) return;
  if (wrong == 0) {
    print("# every byte was received as it was sent\n");
  } else {
    print("# {} bytes are WRONG\n", wrong);
  }
}

}  // namespace

bool measures_messages(const PerfOptions& options) {
  std::string letters = options.collective;
  std::erase_if(letters, [](char c) { return c == '-' || c == '_'; });
  return letters == "sendrecv";
}

AskedEnds asked_ends_of(const PerfOptions& options) {
  refuse("--dtype", !options.dtype.empty());
  refuse("--op", !options.op.empty());
  refuse("--root", !options.root.empty());
  refuse("--algorithm", !options.algorithm.empty());
  refuse("--members", !options.members.empty());
  refuse("--reproducible", options.settings.reproducible);
  refuse("--verbose", options.settings.counts_work);
  const auto rank = [](const std::string& text, std::string_view flag) {
    return static_cast<Rank>(control::parse_integer(text, flag, 0, kMostRank));
  };
  AskedEnds ends;
  if (!options.from.empty()) ends.from = rank(options.from, "--from");
  if (!options.to.empty()) ends.to = rank(options.to, "--to");
  if (!options.paths.empty()) {
    ends.paths =
        static_cast<unsigned>(control::parse_integer(options.paths, "--paths", 1, kMostPaths));
  }
  return ends;
}

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

int run_perf_messages(const PerfOptions& options) {
  PerfSettings settings = options.settings;
  apply_job_options(options, settings);
  const std::vector<std::uint64_t> sizes = sizes_of(options);
  // What no cluster has is refused before one is asked.
  const AskedEnds asked = asked_ends_of(options);
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const RunningCluster running = running_cluster(directory);
  const auto placement =
      placement_of(running, {}, "").with_trainers(settings.trainers, "--trainers");
  const MessageEnds ends = message_ends_of(asked, placement);
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
  MessageRunner runner(trainers, job, settings, ends);
  Report report;
  report.fact("topology", control::topology_json(running.topology));
  report.fact("rate_bps", running.rate_bps);
  report.fact("collective", "sendrecv");
  report.fact("from", ends.from);
  report.fact("to", ends.to);
  std::vector<ReportColumn> columns = perf_columns();
  columns.push_back({{}, "paths"});
  ReportTable& table = report.table("results", std::move(columns));
  if (!options.json) {
    print("# sendrecv from {} to {}, {}, {}, {}, job {}\n{}", ends.from, ends.to,
          running.topology.spec(), control::servers_text(running.topology), rates_text(running),
          job, table.head());
    flush_output();
  }
  std::uint64_t wrong = 0;
  for (const std::uint64_t size : sizes) {
    const PerfRow row = measured_row(
        directory, placement,
        [size] { return fmt::format("messages of {}", human_bytes(static_cast<double>(size))); },
        [&] { return runner.run(size); });
    wrong += row.wrong.value_or(0);
    const MessageWay way = way_of(running.topology, placement, ends, size);
    std::vector<Cell> cells = perf_cells(row, {2, 1.0, way.rate_bps});
    cells.push_back(cell::told(way.paths));
    add_row(table, cells, !options.json);
  }
  if (options.json) {
    report.write(true);
  } else {
    print_foot(settings, wrong);
  }
  flush_output();
  return wrong == 0 ? 0 : kExitFailure;
}

}  // namespace gradcube::cli
