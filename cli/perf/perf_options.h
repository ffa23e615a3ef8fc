// The command line of `gradcube perf`: what the user may write, and what it means. What depends on
// the running cluster is checked against its plan, by the functions that take one.
#ifndef GRADCUBE_CLI_PERF_PERF_OPTIONS_H_
#define GRADCUBE_CLI_PERF_PERF_OPTIONS_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/measure/perf_runner.h"
#include "cli/perf/job_options.h"
#include "control/plan/base/plan.h"

namespace gradcube::cli {

// Of an option that is a rank: what no cluster has is refused before one is asked.
inline constexpr std::uint64_t kMostRank = UINT16_MAX;

// As it was written; empty where it was not.
struct PerfOptions : JobOptions {
  std::string collective;
  std::string sizes;
  std::string min_bytes;
  std::string max_bytes;
  std::string factor = "2";
  std::string dtype;
  std::string op;
  std::string root;
  std::string from;       // of a sendrecv
  std::string to;         // the same
  std::string paths;      // the same
  PerfSettings settings;  // what needs no more than parsing
};

// Adds the options and the help. `options` must outlive the parsing.
void add_perf_options(CLI::App* command, PerfOptions* options);

// All but the members. Throws UsageError: a collective, type or operation that is not known, or an
// option that the collective has no use for.
PerfSettings settings_of(const PerfOptions& options);

// The bytes to measure; 0 for a barrier. Throws UsageError.
std::vector<std::uint64_t> sizes_of(const PerfOptions& options);

// Throws UsageError when the root is no rank of the plan.
void require_root(const PerfSettings& settings, const control::Plan& plan);

// Throws UsageError when no reproducible job of so many trainers can have the type.
void require_carrier(const PerfSettings& settings, const control::Plan& plan);

// The elements that a buffer of `size` bytes holds; where each rank has a chunk, as many as chunks
// of one length hold. Throws UsageError when `size` is not 0 and holds none.
std::uint64_t elements_of(std::uint64_t size, const PerfSettings& settings, std::uint32_t ranks);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_OPTIONS_H_
