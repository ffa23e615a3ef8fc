// What `gradcube perf` measures beside collectives. Each is a subcommand of its own.
#ifndef GRADCUBE_CLI_PERF_PERF_COMMANDS_H_
#define GRADCUBE_CLI_PERF_PERF_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/text/command.h"

namespace gradcube::cli {

// `gradcube perf sendrecv`: messages from one rank to another.
void add_perf_messages(CLI::App& perf, Action& action);

// `gradcube perf hub`: rounds of a parameter hub (measure_hub.h), for chunks of one length or
// several.
void add_perf_hub(CLI::App& perf, Action& action);

// The lengths of "32Ki,1Mi,auto"; 0 for auto. Throws UsageError for one that no hub can have.
std::vector<std::uint64_t> parse_chunks(const std::string& text);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_COMMANDS_H_
