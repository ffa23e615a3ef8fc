// The command line of what `gradcube perf` measures: what the user may write, and what it means.
// What depends on the running cluster is checked against its plan, by the functions that take one.
#ifndef GRADCUBE_CLI_PERF_PERF_OPTIONS_H_
#define GRADCUBE_CLI_PERF_PERF_OPTIONS_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/measure/harness.h"
#include "cli/measure/measure_collective.h"
#include "control/plan/base/plan.h"

namespace gradcube::cli {

// Where a command's help says no more.
inline constexpr const char* kSeePerf =
    "`gradcube perf --help` says what sizes and figures are, and has examples.";

// Of an option that is a rank: what no cluster has is refused before one is asked.
inline constexpr unsigned kMostRank = UINT16_MAX;
inline constexpr unsigned kMostInFlight = 1024;  // of collectives or messages at once

// Of any job, whatever it does; as they were written, and empty where they were not. Below, all
// that options are added to must outlive the parsing.
struct JobOptions {
  std::string algorithm;
  std::string members;
  std::string job;
  double timeout_seconds = 60;
  bool json = false;

  // "perf-4711", or what was asked for.
  std::string job_name(const char* command) const;
};

void add_job_options(CLI::App* command, JobOptions& options, JobSettings& settings);
// --algorithm and --members, of a job that runs a plan.
void add_plan_options(CLI::App* command, JobOptions& options);

// All but the members, which depend on the cluster. Throws a UsageError for an algorithm that there
// is not.
void apply_job_options(const JobOptions& options, JobSettings& settings);

// A list of sizes, or a range as -b, -e and -f of nccl-tests make it: from the least to at most the
// most, each size `factor` times the one before.
struct SizeOptions {
  std::string sizes = "1K,64K,1M,12.5M";
  std::string min_bytes;
  std::string max_bytes;
  unsigned factor = 2;
};

void add_size_options(CLI::App* command, SizeOptions& options);

// In bytes, as control/base/units.h reads them; 0 is a size. Throws a UsageError for an empty item,
// one that is not a size, and a range that is empty or would never end.
std::vector<std::uint64_t> sizes_of(const SizeOptions& options);

// Of a collective, whose kind is in the settings.
struct PerfOptions : JobOptions {
  SizeOptions sizes;
  std::string dtype = "float32";
  std::string op = "sum";
  PerfSettings settings;  // what needs no more than parsing
};

// Those that its kind has a use for.
void add_perf_options(CLI::App* command, PerfOptions& options);

// All but the members. Throws UsageError: a type or an operation that is not known, or that the
// kind does not take.
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
