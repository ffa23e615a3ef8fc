// Measures all-reduces with one trainer per server: threads of this process, each with a session of
// its own.
//
// An iteration: every trainer fills its gradients, all meet at a barrier, every trainer takes the
// time, submits, waits for the end, and takes the time again. The iteration's time is from the
// first start to the last end. With checks, all meet again and share the elements among them: each
// compares its share of every server's gradient with the oracle.
//
// An error or an interrupt (interrupt.h) in one trainer ends the row for all of them: run() throws
// it once.
#ifndef GRADCUBE_CLI_PERF_RUNNER_H_
#define GRADCUBE_CLI_PERF_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "aggregation/element.h"
#include "cli/perf_report.h"
#include "control/base/errors.h"
#include "control/plan/plan.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::cli {

struct PerfSettings {
  aggregation::DataType type = aggregation::DataType::float32;
  aggregation::Operation operation = aggregation::Operation::sum;
  unsigned iterations = 5;
  unsigned warmup = 1;     // iterations that are made, and not reported
  unsigned in_flight = 1;  // collectives at once, each with a gradient of its own
  bool check = false;
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // of one iteration
};

// An iteration took longer than PerfSettings::timeout.
class IterationTimeout : public control::SetupError {
 public:
  IterationTimeout(std::uint64_t bytes, std::chrono::milliseconds timeout);
};

class PerfRunner {
 public:
  // sockets[s] is where server number s takes trainers. Opens all the sessions. The plan must
  // outlive the runner.
  PerfRunner(const control::Plan& plan, const std::vector<std::string>& sockets,
             const std::string& job, const PerfSettings& settings);

  // Measures gradients of `count` elements. Fills in everything but PerfRow::resent, which only the
  // daemon's counters tell. Throws IterationTimeout, or gradcube::Error when a trainer fails.
  PerfRow run(std::uint64_t count);

 private:
  const control::Plan& plan_;
  PerfSettings settings_;
  std::vector<Session> sessions_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_RUNNER_H_
