// Measures rounds of a hub with the trainers of the servers that are on this host: threads of this
// process, each with a session of its own. The other servers' trainers are those of other
// processes, which measure the same at the same time. It is PHub's "ZeroCompute" (section 4.4):
// nothing is computed, so what is measured is the exchange.
//
// An iteration: all trainers meet, each pushes every key once, and waits until all have ended: then
// its server has the new weights of all keys. Its time is from the first start to the last end.
// At most 256 pushes of a trainer are in flight.
//
// An error or an interrupt (interrupt.h) in one trainer ends the measurement for all of them: run()
// throws it once.
#ifndef GRADCUBE_CLI_MEASURE_HUB_RUNNER_H_
#define GRADCUBE_CLI_MEASURE_HUB_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "cli/measure/perf_runner.h"
#include "control/hub/keys.h"
#include "control/plan/placement.h"

#include "gradcube/gradcube_hub.hpp"

namespace gradcube::cli {

struct HubRunSettings {
  std::vector<control::hub::HubKey> keys;  // as ordered_keys() returns them
  std::string optimizer;                   // as it was written, and what it says
  aggregation::OptimizerSettings step;
  std::string algorithm;                        // asked of the daemon; empty: the cluster's default
  std::vector<control::ServerId> members;       // the servers of the job; empty: all
  std::optional<control::ServerId> aggregator;  // of the hub, if it has one
  unsigned trainers = 1;                        // on each server
  unsigned iterations = 5;
  unsigned warmup = 1;  // iterations that are made, and not reported
  bool check = false;
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // of an iteration, or of the hub

  std::uint64_t bytes() const;  // of all keys
};

struct HubTimes {
  std::vector<double> seconds;         // of the iterations, in their order
  std::optional<std::uint64_t> wrong;  // elements over all trainers that are here; with a check
};

class HubRunner {
 public:
  // trainers: of this process, by ascending rank; at least one. Opens their sessions.
  HubRunner(const control::Placement& placement, const std::vector<PerfTrainer>& trainers,
            const std::string& job, const HubRunSettings& settings);

  // Makes a hub with chunks of this length, 0: by the model's, measures, and frees it. Throws
  // gradcube::Error when a trainer fails, SetupError when interrupted.
  HubTimes run(std::uint64_t chunk_bytes);

 private:
  HubRunSettings settings_;
  std::uint32_t all_ranks_;
  std::vector<control::Rank> ranks_;
  std::vector<Session> sessions_;                          // of these ranks
  std::vector<std::vector<Buffer<std::byte>>> gradients_;  // by trainer and key
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_HUB_RUNNER_H_
