// Measures rounds of a hub (harness.h) with the trainers of the servers that are on this host. The
// other servers' trainers are those of other processes, which measure the same at the same time. It
// is PHub's "ZeroCompute" (section 4.4):
// nothing is computed, so what is measured is the exchange.
//
// An iteration: all trainers meet, each pushes every key once, and waits until all have ended: then
// its server has the new weights of all keys. Its time is from the first start to the last end.
// At most 256 pushes of a trainer are in flight.
#ifndef GRADCUBE_CLI_MEASURE_MEASURE_HUB_H_
#define GRADCUBE_CLI_MEASURE_MEASURE_HUB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/measure/harness.h"
#include "cli/measure/perf_row.h"
#include "control/checkpoint/hub_key.h"
#include "control/checkpoint/key_optimizers.h"
#include "control/plan/base/placement.h"

#include "gradcube/gradcube_hub.hpp"

namespace gradcube::cli {

struct HubRunSettings : JobSettings {
  std::vector<control::HubKey> keys;  // as ordered_keys() returns them
  std::string optimizer;              // as it was written, and what it says
  control::KeyOptimizers optimizers;
  std::vector<std::uint64_t> aggregators;  // of the hub, if it has some

  std::uint64_t bytes() const;  // of all keys
};

// What trainers push, by trainer and key: in memory of their sessions, for all rows.
using HubGradients = std::vector<std::vector<Buffer<std::byte>>>;
HubGradients gradients_of(Harness& harness, const HubRunSettings& settings);

// Makes a hub with chunks of this length, 0: by the model's, measures, and frees it. A row has what
// an all-reduce of the model moves. Throws gradcube::Error when a trainer fails, SetupError when
// interrupted, IterationTimeout.
PerfRow measure_hub(Harness& harness, const HubRunSettings& settings, HubGradients& gradients,
                    std::uint64_t chunk_bytes);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_MEASURE_HUB_H_
