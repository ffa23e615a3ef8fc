// Whether the links between neighbours are as the cluster is configured: what `gradcube check`
// measures, and how it judges.
//
// A link is measured by a job of its two servers, which all-reduces
//   - a few bytes, again and again: two messages, one after the other, so the median time is the
//     round trip, with the trainers' waiting;
//   - buffers that the link takes kTransfer for, in frames of the cluster's MTU: as many bytes go
//     over it each way, so bytes by median time is the rate of the payload;
// and by the counters of the job's flows: how many segments had to be sent again. That something
// on the way takes no frames of the cluster's MTU the daemons say (links/full_frames.h); where they
// have not found out yet, or do not greet, the few bytes come through and the buffers do not.
//
// Where the host is busy, links seem slow; so it is measured, too, how long the daemons' threads
// had no core meanwhile. That changes no judgement: nobody knows what the link does otherwise.
//
// The measurements of a round (control/plan/neighbour_rounds.h) run at the same time, at most
// kMostAtOnce of them, as a daemon holds only so many jobs. Where one of the servers is on another
// host, the same command has to run there. A link is not measured if the daemon already says what
// is wrong with it: if it is down, its frames would take other paths. Nor is one to an aggregator,
// which takes no trainers (control/settings/server_roles.h): the daemon's word is all there is.
#ifndef GRADCUBE_CLI_CHECKS_LINK_CHECK_H_
#define GRADCUBE_CLI_CHECKS_LINK_CHECK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/running_cluster.h"
#include "cli/text/report.h"
#include "control/plan/base/topology.h"
#include "control/plan/neighbour_rounds.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

struct LinkCheckSettings {
  std::string job;  // what the names of the jobs begin with
  // Of the configured rate, what the payload must reach; nothing where links have no rate.
  double least_rate = 0.8;
  double most_lost = 0.01;  // of the segments
  std::optional<double> most_round_trip_seconds;
  std::chrono::milliseconds timeout = std::chrono::seconds(10);  // of each all-reduce
};

struct LinkFigures {
  double payload_bps = 0;  // each way
  double round_trip_seconds = 0;
  // Segments of the large buffers, by the servers that are here.
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;  // sent again, and had not arrived before
  // The share of the time that a thread of the daemons here waited for a core (host_load.h).
  double core_wait = 0;
};

struct LinkResult {
  control::NeighbourLink link;
  double configured_bps = 0;             // 0: not limited
  std::optional<LinkFigures> figures{};  // nothing if it was not, or could not be measured
  std::string problem;                   // empty: it is as configured, or was left out
  // Why it was not measured, if that is no problem: one of its servers takes no trainers.
  std::string left_out;
};

// The payload's percentage of the configured rate, rounded down: what has not reached its least
// does not look as if it had.
double percent_of_rate(const LinkFigures& figures, double configured_bps);

// What is wrong with these figures of a link of this rate; empty if nothing is.
std::string problem_of(const LinkFigures& figures, double configured_bps,
                       const LinkCheckSettings& settings);

// What the daemon says against a link without any measurement: it is down, passes small frames
// alone, or one of its ports is cabled or set wrongly. Empty if nothing.
std::string reported_problem(const nlohmann::json& status, const RunningCluster& cluster,
                             const control::NeighbourLink& link);

// Why no trainers can measure this link, as LinkResult has it; empty if they can.
std::string left_out_for(const RunningCluster& cluster, const control::NeighbourLink& link);

// The name of the job that measures a link. A trainer can give it to a job if `job` has at most
// kLongestLinkCheckJob characters.
inline constexpr std::size_t kLongestLinkCheckJob = 48;
std::string link_job_name(const std::string& job, const control::NeighbourLink& link);

class LinkCheck {
 public:
  static constexpr unsigned kMostAtOnce = 16;
  static constexpr std::chrono::milliseconds kTransfer{40};

  // Both must outlive this.
  LinkCheck(const control::RunDirectory& directory, const LinkCheckSettings& settings);

  const RunningCluster& cluster() const { return cluster_; }
  // Those of which a server is on this host.
  const std::vector<std::vector<control::NeighbourLink>>& rounds() const { return rounds_; }
  bool others_are_elsewhere() const;

  // What is wrong with a link is in its result. Throws a SetupError when the daemon does not
  // answer, or on an interrupt (interrupt.h).
  std::vector<LinkResult> run(const std::vector<control::NeighbourLink>& round) const;

 private:
  class Measurement;

  void run_at_once(const nlohmann::json& status, const control::NeighbourLink* links,
                   std::size_t count, std::vector<LinkResult>& results) const;

  const control::RunDirectory& directory_;
  const LinkCheckSettings& settings_;
  RunningCluster cluster_;
  std::vector<std::vector<control::NeighbourLink>> rounds_;
};

// A table of the links, a line for each level, and the verdict; also that the daemons waited for
// cores, where links have problems and that may be why. Of more than kMostLinks only those with a
// problem are listed, unless `all`.
//
// {"topology":..,"ok":true,"links":[{"level":0,"between":[[0,0],[0,1]],"configured_bps":..,
// "payload_bps":..,"round_trip_seconds":..,"sent":..,"lost":..,"core_wait":0.02,
// "problem":null,"left_out":null}]}; null for what is not limited, not measured, right, or not left
// out.
inline constexpr std::size_t kMostLinks = 64;
Report links_report(const control::Topology& topology, const std::vector<LinkResult>& results,
                    bool all);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_LINK_CHECK_H_
