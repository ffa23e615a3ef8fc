// What a run costs beside time, for `gradcube perf --verbose`: what servers have sent, how often
// threads have slept, and what they took of the cores.
//
// Frames are those of all servers, by their daemons' counters. Sleeps and CPU time are those of
// this host's daemons (host_load.h), and of trainers' threads that ask for theirs: processes on
// other hosts are not seen.
#ifndef GRADCUBE_CLI_MEASURE_WORK_COUNTS_H_
#define GRADCUBE_CLI_MEASURE_WORK_COUNTS_H_

#include <cstdint>
#include <optional>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

struct WorkCounts {
  std::uint64_t segments = 0;          // sent for the first time
  std::uint64_t resent = 0;            // segments, sent again
  std::uint64_t acknowledgements = 0;  // frames that carried nothing else
  std::uint64_t sleeps = 0;            // voluntary context switches: each ended with a wake-up
  std::uint64_t cpu_ns = 0;

  WorkCounts& operator+=(const WorkCounts& other);
  // Nothing where one of them is less than before: a daemon has been started anew.
  std::optional<WorkCounts> since(const WorkCounts& before) const;
};

// The calling thread's, until now: sleeps and CPU time.
WorkCounts work_of_this_thread();

// The daemons', until now; nothing where they do not count frames. Throws a SetupError where none
// answers.
std::optional<WorkCounts> work_of_daemons(const control::RunDirectory& directory);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_WORK_COUNTS_H_
