// Measures collectives (harness.h) with the trainers of each server of the job, mostly one, or of
// those servers that are on this host. The other servers' trainers are those of other processes,
// which measure the same at the same time.
//
// An iteration: every trainer fills its buffers, all meet at a barrier, every trainer takes the
// time, submits, waits for the end, and takes the time again. The iteration's time is from the
// first start to the last end. With checks, all meet again and compare what the kind defines with
// the oracle. Where ranks have the same result, they share its elements among them: each compares
// its share of every rank's buffer. A barrier is right if nobody left it before the last one came.
// With trainers elsewhere a barrier of the job's stands before each start; times and checks are of
// the trainers that are here.
#ifndef GRADCUBE_CLI_MEASURE_MEASURE_COLLECTIVE_H_
#define GRADCUBE_CLI_MEASURE_MEASURE_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>

#include "aggregation/element.h"
#include "cli/measure/harness.h"
#include "cli/measure/perf_row.h"
#include "control/plan/base/placement.h"
#include "control/plan/collective_kind.h"
#include "control/plan/plan_choice.h"

namespace gradcube::cli {

struct PerfSettings : JobSettings {
  control::CollectiveKind kind = control::CollectiveKind::all_reduce;
  control::Rank root = 0;
  aggregation::DataType type = aggregation::DataType::float32;
  aggregation::Operation operation = aggregation::Operation::sum;
  unsigned in_flight = 1;    // collectives at once, each with a buffer of its own
  bool counts_work = false;  // of the trainers' threads
};

// The bytes of an element on the links, in a job of so many ranks. 0: no reproducible job can have
// it.
std::size_t carried_bytes(const PerfSettings& settings, control::Rank ranks);

// Measures buffers of `count` elements: a multiple of the ranks where each has a chunk. The harness
// has the settings' job, and the choice of plans is that of its algorithm and members. Fills in
// everything but what daemons have done. Throws IterationTimeout, or gradcube::Error when a trainer
// fails.
PerfRow measure_collective(Harness& harness, const control::PlanChoice& choice,
                           const PerfSettings& settings, std::uint64_t count);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_MEASURE_COLLECTIVE_H_
