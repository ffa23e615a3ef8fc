// Measures messages from one trainer to another (harness.h). Trainers of all servers are of this
// process and join, as a job needs them; two of them do something, and this thread for both.
//
// An iteration: the receiver submits its receives, the sender its sends, and both wait for their
// ends. Its time is from the first submission to the last end.
#ifndef GRADCUBE_CLI_MEASURE_MEASURE_MESSAGES_H_
#define GRADCUBE_CLI_MEASURE_MEASURE_MESSAGES_H_

#include <cstdint>

#include "cli/measure/harness.h"
#include "cli/measure/measure_collective.h"
#include "cli/measure/perf_row.h"
#include "control/plan/base/placement.h"

namespace gradcube::cli {

// Between which ranks, and over how many paths at most (0: by length).
struct MessageEnds {
  control::Rank from = 0;
  control::Rank to = 0;
  unsigned paths = 0;
};

// The harness has all trainers of the job. Of the settings those of collectives mean nothing.
// Throws as measure_collective() does.
PerfRow measure_messages(Harness& harness, const PerfSettings& settings, const MessageEnds& ends,
                         std::uint64_t bytes);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_MEASURE_MESSAGES_H_
