// `gradcube perf sendrecv`: measures messages from one trainer of the running cluster to another.
// The bound is what the paths that the message takes carry together, each at the rate of its
// slowest link.
#ifndef GRADCUBE_CLI_PERF_PERF_MESSAGES_H_
#define GRADCUBE_CLI_PERF_PERF_MESSAGES_H_

#include <cstdint>
#include <optional>

#include "cli/measure/message_runner.h"
#include "cli/perf/perf_options.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"

namespace gradcube::cli {

// Whether the command line asks for this, in any spelling: "sendrecv", "send-recv".
bool measures_messages(const PerfOptions& options);

// What the command line says. Without a receiver it is the last rank.
struct AskedEnds {
  control::Rank from = 0;
  std::optional<control::Rank> to;
  unsigned paths = 0;  // at most; 0: by length
};

// Throws UsageError: a rank or paths that no cluster has, or an option that says nothing about
// messages.
AskedEnds asked_ends_of(const PerfOptions& options);

// Throws UsageError: a rank that there is not.
MessageEnds message_ends_of(const AskedEnds& asked, const control::Placement& placement);

// Throws UsageError where the two are farther apart than a frame may go.
void require_way(const control::Topology& topology, const control::Placement& placement,
                 const MessageEnds& ends);

// What a message of so many bytes takes.
struct MessageWay {
  unsigned paths = 0;              // 0: both trainers are on one server
  std::optional<double> rate_bps;  // of all paths together; nothing where no rate is known
};
MessageWay way_of(const control::Topology& topology, const control::Placement& placement,
                  const MessageEnds& ends, std::uint64_t bytes);

int run_perf_messages(const PerfOptions& options);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_MESSAGES_H_
