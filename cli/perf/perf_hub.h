// `gradcube perf hub`: measures rounds of a parameter hub (hub_runner.h), for chunks of one length
// or several.
#ifndef GRADCUBE_CLI_PERF_PERF_HUB_H_
#define GRADCUBE_CLI_PERF_PERF_HUB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/text/command.h"

namespace gradcube::cli {

// Of `perf`, whose own action is not taken then.
void add_perf_hub(CLI::App& perf, Action& action);

// The lengths of "32Ki,1Mi,auto"; 0 for auto. Throws UsageError for one that no hub can have.
std::vector<std::uint64_t> parse_chunks(const std::string& text);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_HUB_H_
