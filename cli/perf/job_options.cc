#include "cli/perf/job_options.h"

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/placement.h"

namespace gradcube::cli {
namespace {

constexpr double kShortestTimeout = 0.001;  // seconds
constexpr double kLongestTimeout = 1e6;

}  // namespace

std::string JobOptions::job_name(const char* command) const {
  return job.empty() ? fmt::format("{}-{}", command, getpid()) : job;
}

void add_job_options(CLI::App* command, JobOptions& options, JobSettings& settings) {
  add_number(command, "-n,--iterations", settings.iterations, 1, 1'000'000,
             "Measured for each row");
  add_number(command, "-w,--warmup", settings.warmup, 0, 1'000'000,
             "Iterations before the measured ones");
  add_text(command, "--algorithm", options.algorithm,
           "Asked for by the job (default: the cluster's): `gradcube plan --help`, or auto");
  add_text(command, "--members", options.members,
           "The servers of the job, in one argument: \"0,0 0,1 0,2\" (default: all)");
  add_number(command, "--trainers", settings.trainers, 1, control::kMaxLocalTrainers,
             "Trainers of the job on each server");
  command->add_option("--job", options.job, "The job's name (default: one of its own)")
      ->check(job_name());
  command->add_option("--timeout", options.timeout_seconds, "Seconds that an iteration may take")
      ->capture_default_str()
      ->transform(seconds_in(kShortestTimeout, kLongestTimeout));
  command->add_flag("--json", options.json, "Print one JSON object");
}

void apply_job_options(const JobOptions& options, JobSettings& settings) {
  if (!options.algorithm.empty()) control::require_algorithm(options.algorithm, "--algorithm");
  settings.algorithm = options.algorithm;
  settings.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3));
}

}  // namespace gradcube::cli
