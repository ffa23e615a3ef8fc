// `gradcube perf hub`: measures rounds of a parameter hub (hub_runner.h), for chunks of one length
// or several, and with --breakdown what each part of a round takes.
//
// The breakdown is PHub's progressive overhead (section 2.3.2, Figures 5 and 14): parts are turned
// on one after the other, and each one's time is what it adds to those before it, which may have
// hidden the rest of it.
//
//   exchange         gradients and weights travel, and nothing is added
//   aggregation      they are added
//   optimizer        its step is taken
//   synchronization  all trainers wait for each other at the end of an iteration; before, each
//                    pushed a key again when it saw that the key's round had ended
#ifndef GRADCUBE_CLI_PERF_PERF_HUB_H_
#define GRADCUBE_CLI_PERF_PERF_HUB_H_

#include <CLI/App.hpp>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/text/command.h"

namespace gradcube::cli {

// Of `perf`, whose own action is not taken then.
void add_perf_hub(CLI::App& perf, Action& action);

// The lengths of "32Ki,1Mi,auto"; 0 for auto. Throws UsageError for one that no hub can have.
std::vector<std::uint64_t> parse_chunks(const std::string& text);

struct HubPart {
  std::string_view name;
  double seconds = 0;  // it may be below 0 where it is within the noise
};
// From what was measured with each part and those before it.
std::array<HubPart, 4> hub_parts(const std::array<double, 4>& cumulative_seconds);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_HUB_H_
