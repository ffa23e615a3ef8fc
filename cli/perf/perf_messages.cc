#include "cli/perf/perf_messages.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"
#include "cli/cluster/control_client.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/running_cluster.h"
#include "cli/measure/perf_inputs.h"
#include "cli/measure/perf_report.h"
#include "cli/measure/perf_runner.h"
#include "cli/text/command.h"
#include "cli/text/json_fields.h"
#include "cli/text/output.h"
#include "cli/text/progress_line.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/settings/run_directory.h"
#include "trainer/shared_layout.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::cli {
namespace {

using control::Rank;
using control::RunDirectory;
using control::UsageError;
using Clock = std::chrono::steady_clock;
using Memory = Buffer<std::byte>;

constexpr unsigned kMostPaths = 8;  // as gradcube_message::paths
constexpr auto kWaitSlice = std::chrono::milliseconds(200);

void refuse(std::string_view flag, bool given) {
  if (!given) return;
  throw UsageError(
      fmt::format("{}: a message is no collective; expected perf sendrecv without it", flag));
}

// The sessions of all trainers, and what one size is measured with.
class Measurement {
 public:
  Measurement(const std::vector<PerfTrainer>& trainers, const std::string& job,
              const PerfSettings& settings, const MessageEnds& ends)
      : settings_(settings), ends_(ends) {
    Options options;
    options.trainers_per_server = settings.trainers;
    for (const PerfTrainer& trainer : trainers) {
      options.local = static_cast<int>(trainer.local);
      sessions_.emplace_back(job, trainer.socket, options);
    }
  }

  PerfRow run(std::uint64_t bytes) {
    std::vector<Memory> sent;
    std::vector<Memory> received;
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      sent.push_back(sessions_[ends_.from].buffer<std::byte>(bytes));
      received.push_back(sessions_[ends_.to].buffer<std::byte>(bytes));
    }
    PerfRow row;
    row.kind = control::CollectiveKind::broadcast;  // what its figures are like
    row.type = aggregation::DataType::bytes;
    row.count = bytes;
    row.in_flight = settings_.in_flight;
    std::uint64_t wrong = 0;
    for (unsigned iteration = 0; iteration < settings_.warmup + settings_.iterations; ++iteration) {
      for (unsigned i = 0; i < settings_.in_flight; ++i) fill(iteration, i, sent[i].span());
      const double seconds = exchange(sent, received);
      if (iteration >= settings_.warmup) row.seconds.push_back(seconds);
      for (unsigned i = 0; settings_.check && i < settings_.in_flight; ++i) {
        fill(iteration, i, sent[i].span());
        wrong += differences(sent[i].span(), received[i].span());
      }
    }
    if (settings_.check) row.wrong = wrong;
    return row;
  }

 private:
  void fill(unsigned iteration, unsigned message, std::span<std::byte> memory) const {
    fill_input(aggregation::DataType::uint8, aggregation::Operation::sum,
               std::uint64_t{iteration} << 16 | message, ends_.from, 0, memory.size(),
               memory.data());
  }

  static std::uint64_t differences(std::span<const std::byte> a, std::span<const std::byte> b) {
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < a.size(); ++i) different += a[i] == b[i] ? 0 : 1;
    return different;
  }

  double exchange(const std::vector<Memory>& sent, const std::vector<Memory>& received) {
    gradcube_session* const from = sessions_[ends_.from].handle();
    gradcube_session* const to = sessions_[ends_.to].handle();
    std::vector<std::uint64_t> sends(sent.size());
    std::vector<std::uint64_t> receives(sent.size());
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < received.size(); ++i) {
      detail::check(gradcube_recv(to, received[i].data(), received[i].size(), ends_.from, i,
                                  nullptr, &receives[i]),
                    to);
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      gradcube_message message = GRADCUBE_MESSAGE_INIT;
      message.peer = ends_.to;
      message.buffer = sent[i].data();
      message.bytes = sent[i].size();
      message.tag = i;
      message.paths = ends_.paths;
      detail::check(gradcube_submit_message(from, &message, &sends[i]), from);
    }
    for (const std::uint64_t request : receives) wait(to, request, begin);
    for (const std::uint64_t request : sends) wait(from, request, begin);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void wait(gradcube_session* session, std::uint64_t request, Clock::time_point begin) const {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(begin + settings_.timeout - Clock::now());
      if (left.count() <= 0) {
        return detail::check(gradcube_wait(session, request, 0), session);  // which says why
      }
      int done = 0;
      const auto slice = std::min<std::chrono::milliseconds>(left, kWaitSlice);
      detail::check(gradcube_poll(session, request, static_cast<int>(slice.count()), &done),
                    session);
      if (done != 0) return;
      if (InterruptGuard::interrupted()) throw control::SetupError("interrupted");
    }
  }

  const PerfSettings& settings_;
  const MessageEnds ends_;
  std::vector<Session> sessions_;  // by rank
};

PerfRow measure(Measurement& measurement, std::uint64_t size, const RunDirectory& directory,
                const control::Placement& placement) {
  const ProgressLine progress(
      [size] { return fmt::format("messages of {}", human_bytes(static_cast<double>(size))); });
  const auto before = resent_so_far(directory);
  try {
    PerfRow row = measurement.run(size);
    const auto after = resent_so_far(directory);
    if (before && after && *after >= *before) row.resent = *after - *before;
    return row;
  } catch (const Error& error) {
    throw control::SetupError(error.what() + ended_meanwhile(error, directory, placement));
  }
}

PerfLinks links_of(const MessageWay& way) { return {2, 1.0, way.rate_bps}; }

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
    for (const bcube::Hop& hop : path) {
      slowest = std::min(slowest, topology.dimensions()[hop.level].rate_bps);
    }
    rate += static_cast<double>(slowest);
  }
  if (rate > 0) way.rate_bps = rate;
  return way;
}

int run_perf_messages(const PerfOptions& options) {
  PerfSettings settings = options.settings;
  settings.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3));
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
  const std::string job = options.job.empty() ? fmt::format("perf-{}", getpid()) : options.job;
  Measurement measurement(trainers, job, settings, ends);
  if (!options.json) {
    print("# sendrecv from {} to {}, {}, {}, {}, job {}\n{}", ends.from, ends.to,
          running.topology.spec(), control::servers_text(running.topology), rates_text(running),
          job, table_head());
    flush_output();
  }
  auto results = nlohmann::ordered_json::array();
  std::uint64_t wrong = 0;
  for (const std::uint64_t size : sizes) {
    const PerfRow row = measure(measurement, size, directory, placement);
    wrong += row.wrong.value_or(0);
    const MessageWay way = way_of(running.topology, placement, ends, size);
    if (options.json) {
      results.push_back(row_json(row, links_of(way)));
      results.back()["paths"] = way.paths;
    } else {
      write_output(table_row(row, links_of(way)));
      flush_output();
    }
  }
  if (options.json) {
    const nlohmann::json report = {{"topology", control::topology_json(running.topology)},
                                   {"rate_bps", running.rate_bps},
                                   {"collective", "sendrecv"},
                                   {"from", ends.from},
                                   {"to", ends.to},
                                   {"results", results}};
    write_output(report.dump() + "\n");
  } else {
    print_foot(settings, wrong);
  }
  flush_output();
  return wrong == 0 ? 0 : kExitFailure;
}

}  // namespace gradcube::cli
