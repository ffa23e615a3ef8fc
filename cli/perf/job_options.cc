#include "cli/perf/job_options.h"

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "control/plan/algorithms.h"
#include "control/plan/placement.h"

namespace gradcube::cli {
namespace {

constexpr double kShortestTimeout = 0.001;  // seconds
constexpr double kLongestTimeout = 1e6;

}  // namespace

std::string JobOptions::job_name(const char* command) const {
  return job.empty() ? fmt::format("{}-{}", command, getpid()) : job;
}

void add_job_options(CLI::App* command, JobOptions& options, JobSettings& settings) {
  command->add_option("-n,--iterations", settings.iterations, "Measured of each row")
      ->capture_default_str()
      ->check(whole_number_in(1, 1'000'000));
  command->add_option("-w,--warmup", settings.warmup, "Iterations before the measured ones")
      ->capture_default_str()
      ->check(whole_number_in(0, 1'000'000));
  command
      ->add_option("--algorithm", options.algorithm,
                   "Asked for by the job (default: the cluster's): `gradcube plan --help`, or auto")
      ->check(not_empty());
  command
      ->add_option("--members", options.members,
                   "The servers of the job, in one argument: \"0,0 0,1 0,2\" (default: all)")
      ->check(not_empty());
  command->add_option("--trainers", settings.trainers, "Trainers of the job on each server")
      ->capture_default_str()
      ->check(whole_number_in(1, control::kMaxLocalTrainers));
  command->add_option("--job", options.job, "The job's name (default: one of its own)")
      ->check(job_name());
  command->add_option("--timeout", options.timeout_seconds, "Seconds that an iteration may take")
      ->capture_default_str()
      ->check(seconds_in(kShortestTimeout, kLongestTimeout));
  command->add_flag("--json", options.json, "Print one JSON object");
}

void apply_job_options(const JobOptions& options, JobSettings& settings) {
  if (!options.algorithm.empty()) control::require_algorithm(options.algorithm, "--algorithm");
  settings.algorithm = options.algorithm;
  settings.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3));
}

}  // namespace gradcube::cli
