// Measures messages from one trainer to another (harness.h). Trainers of all servers are of this
// process and join, as a job needs them; two of them do something, and this thread for both.
//
// An iteration: the receiver submits its receives, the sender its sends, and both wait for their
// ends. Its time is from the first submission to the last end.
#ifndef GRADCUBE_CLI_MEASURE_MESSAGE_RUNNER_H_
#define GRADCUBE_CLI_MEASURE_MESSAGE_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cluster/perf_trainer.h"
#include "cli/measure/harness.h"
#include "cli/measure/perf_row.h"
#include "cli/measure/perf_runner.h"

namespace gradcube::cli {

// Between which ranks, and over how many paths at most (0: by length).
struct MessageEnds {
  control::Rank from = 0;
  control::Rank to = 0;
  unsigned paths = 0;
};

class MessageRunner {
 public:
  // trainers: all of the job's. Of the settings those of collectives mean nothing.
  MessageRunner(const std::vector<PerfTrainer>& trainers, const std::string& job,
                const PerfSettings& settings, const MessageEnds& ends);

  // Throws as PerfRunner::run() does.
  PerfRow run(std::uint64_t bytes);

 private:
  using Memory = std::vector<Buffer<std::byte>>;

  double exchange(const Memory& sent, const Memory& received);

  const PerfSettings settings_;
  const MessageEnds ends_;
  Harness harness_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_MESSAGE_RUNNER_H_
