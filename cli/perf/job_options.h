// The options of what `gradcube perf` measures that are about its job, whatever that does.
#ifndef GRADCUBE_CLI_PERF_JOB_OPTIONS_H_
#define GRADCUBE_CLI_PERF_JOB_OPTIONS_H_

#include <CLI/App.hpp>
#include <string>

#include "cli/measure/harness.h"

namespace gradcube::cli {

// As they were written; empty where they were not.
struct JobOptions {
  std::string algorithm;
  std::string members;
  std::string job;
  double timeout_seconds = 60;
  bool json = false;

  // "perf-4711", or what was asked for.
  std::string job_name(const char* command) const;
};

// Both must outlive the parsing.
void add_job_options(CLI::App* command, JobOptions& options, JobSettings& settings);

// All but the members, which depend on the cluster. Throws a UsageError for an algorithm that there
// is not.
void apply_job_options(const JobOptions& options, JobSettings& settings);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_JOB_OPTIONS_H_
