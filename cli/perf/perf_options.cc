#include "cli/perf/perf_options.h"

#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <unistd.h>

#include "aggregation/element.h"
#include "aggregation/reproducible.h"
#include "cli/measure/perf_collective.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/placement.h"

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::Operation;
using control::CollectiveKind;
using control::UsageError;

constexpr unsigned kMostSizeFactor = 1'000'000;
constexpr double kShortestTimeout = 0.001;  // seconds
constexpr double kLongestTimeout = 1e6;

// The names of the values below `values` that `fits` accepts.
template <typename T, typename Name, typename Fits>
std::string names_of(std::size_t values, Name name, Fits fits) {
  std::string names;
  for (std::size_t i = 0; i < values; ++i) {
    const auto value = static_cast<T>(i);
    if (fits(value)) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(value));
  }
  return names;
}

// Of those that perf takes.
std::string types_with(Operation operation) {
  return names_of<DataType>(
      aggregation::kTypeNumbers, aggregation::data_type_name, [operation](DataType type) {
        return aggregation::is_plain(aggregation::element_type(type)) && supports(type, operation);
      });
}

// Where elements are added, a type whose elements can be.
DataType parse_type(CollectiveKind kind, const std::string& text) {
  const auto fits = [kind](DataType type) {
    if (!aggregation::is_plain(aggregation::element_type(type))) return false;
    return !control::reduces(kind) || supports(type, Operation::sum);
  };
  const std::optional<DataType> type = aggregation::parse_data_type(text);
  if (type && fits(*type)) return *type;
  throw UsageError(fmt::format(
      "--dtype: {} {}; expected {}", control::quoted(text),
      type ? "cannot be added" : "is not known",
      names_of<DataType>(aggregation::kTypeNumbers, aggregation::data_type_name, fits)));
}

Operation parse_operation_of(DataType type, const std::string& text) {
  const auto fits = [type](Operation operation) { return supports(type, operation); };
  const std::string expected =
      names_of<Operation>(aggregation::kOperations, aggregation::operation_name, fits);
  const std::optional<Operation> operation = aggregation::parse_operation(text);
  if (!operation) {
    throw UsageError(
        fmt::format("--op: {} is not known; expected {}", control::quoted(text), expected));
  }
  if (!fits(*operation)) {
    throw UsageError(fmt::format("--op: {} has no {}; expected {}, or another --dtype",
                                 data_type_name(type), text, expected));
  }
  return *operation;
}

std::vector<std::uint64_t> listed_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (const std::string_view item : control::split(text, ',')) {
    if (item.empty()) {
      throw UsageError("--sizes: a size is empty; expected a list of bytes such as 1K,64K,12.5M");
    }
    sizes.push_back(control::parse_size(item, "--sizes"));
  }
  return sizes;
}

}  // namespace

std::string JobOptions::job_name(const char* command) const {
  return job.empty() ? fmt::format("{}-{}", command, getpid()) : job;
}

void add_job_options(CLI::App* command, JobOptions& options, JobSettings& settings) {
  add_number(command, "-n,--iterations", settings.iterations, 1, 1'000'000,
             "Measured for each row");
  add_number(command, "-w,--warmup", settings.warmup, 0, 1'000'000,
             "Iterations before the measured ones");
  add_number(command, "--trainers", settings.trainers, 1, control::kMaxLocalTrainers,
             "Trainers of the job on each server");
  command->add_option("--job", options.job, "The job's name (default: one of its own)")
      ->check(job_name());
  command->add_option("--timeout", options.timeout_seconds, "Seconds that an iteration may take")
      ->capture_default_str()
      ->transform(seconds_in(kShortestTimeout, kLongestTimeout));
  command->add_flag("--json", options.json, "Print one JSON object");
}

void add_plan_options(CLI::App* command, JobOptions& options) {
  add_text(command, "--algorithm", options.algorithm,
           "Asked for by the job (default: the cluster's): `gradcube plan --help`, or auto");
  add_text(command, "--members", options.members,
           "The servers of the job, in one argument: \"0,0 0,1 0,2\" (default: all)");
}

void apply_job_options(const JobOptions& options, JobSettings& settings) {
  if (!options.algorithm.empty()) control::require_algorithm(options.algorithm, "--algorithm");
  settings.algorithm = options.algorithm;
  settings.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3));
}

void add_size_options(CLI::App* command, SizeOptions& options) {
  CLI::Option* sizes =
      add_text(command, "--sizes", options.sizes, "Bytes of each buffer, as a list");
  CLI::Option* least =
      add_text(command, "-b,--min-bytes", options.min_bytes, "The first size of a range");
  CLI::Option* most = add_text(command, "-e,--max-bytes", options.max_bytes,
                               "The range's end (default: --min-bytes)");
  CLI::Option* factor = add_number(command, "-f,--factor", options.factor, 2, kMostSizeFactor,
                                   "Each size of the range is this many times the last");
  for (CLI::Option* option : {least, most, factor}) option->excludes(sizes);
  for (CLI::Option* option : {most, factor}) option->needs(least);
}

std::vector<std::uint64_t> sizes_of(const SizeOptions& options) {
  if (options.min_bytes.empty()) return listed_sizes(options.sizes);
  const std::uint64_t least = control::parse_size(options.min_bytes, "--min-bytes");
  const std::uint64_t most =
      options.max_bytes.empty() ? least : control::parse_size(options.max_bytes, "--max-bytes");
  if (least > most) {
    throw UsageError(fmt::format("--min-bytes is {}, which is more than --max-bytes, {}",
                                 control::format_size(least), control::format_size(most)));
  }
  if (least == 0 && most > 0) {
    throw UsageError(
        "--min-bytes is 0, and no factor leads from 0 to another size: give at least 1");
  }
  std::vector<std::uint64_t> sizes = {least};
  while (sizes.back() > 0 && sizes.back() <= most / options.factor) {
    sizes.push_back(sizes.back() * options.factor);
  }
  return sizes;
}

void add_perf_options(CLI::App* command, PerfOptions& options) {
  PerfSettings& settings = options.settings;
  if (settings.kind != CollectiveKind::barrier) {
    add_size_options(command, options.sizes);
    const std::string types = types_with(Operation::sum);
    add_text(command, "-d,--dtype", options.dtype,
             control::reduces(settings.kind) ? types : types + ", bytes");
  }
  if (takes_operation(settings.kind)) {
    add_text(command, "-o,--op", options.op,
             fmt::format("sum, average (of {}), min, max", types_with(Operation::average)));
  }
  if (control::has_root(settings.kind)) {
    add_number(command, "--root", settings.root, 0, kMostRank, "The rank that it is about");
  }
  add_number(command, "--in-flight", settings.in_flight, 1, kMostInFlight, "Collectives at once");
  add_plan_options(command, options);
  add_job_options(command, options, settings);
  command->add_flag("--check", settings.check,
                    "Compare every element of every result with that of a scalar computation");
  command->add_flag("-v,--verbose", settings.counts_work,
                    "Also show what an operation costs: frames, sleeps of threads, CPU time");
  command->add_flag("--reproducible", settings.reproducible,
                    "Ask for results that have the same bits whatever the algorithm, the topology "
                    "and the cores; floats take 2 to 8 times their bytes on the links");
}

PerfSettings settings_of(const PerfOptions& options) {
  PerfSettings settings = options.settings;
  settings.type = parse_type(settings.kind, options.dtype);
  if (takes_operation(settings.kind)) {
    settings.operation = parse_operation_of(settings.type, options.op);
  }
  apply_job_options(options, settings);
  return settings;
}

std::vector<std::uint64_t> sizes_of(const PerfOptions& options) {
  if (options.settings.kind == CollectiveKind::barrier) return {0};
  return sizes_of(options.sizes);
}

void require_root(const PerfSettings& settings, const control::Plan& plan) {
  const std::uint32_t trainers = plan.placement().trainers();
  if (settings.root < trainers) return;
  throw UsageError(
      fmt::format("--root: there is no rank {}; expected 0 to {}", settings.root, trainers - 1));
}

void require_carrier(const PerfSettings& settings, const control::Plan& plan) {
  if (carried_bytes(settings, plan.placement().trainers()) != 0) return;
  throw UsageError(fmt::format(
      "--reproducible: a sum of float64 takes at most {} trainers, of other floats {}, and the job "
      "has {}; expected another --dtype, or fewer --members",
      aggregation::kMostReproducibleFloat64, aggregation::kMostReproducible,
      plan.placement().trainers()));
}

std::uint64_t elements_of(std::uint64_t size, const PerfSettings& settings, std::uint32_t ranks) {
  const std::uint64_t element = aggregation::element_bytes(settings.type);
  const std::uint64_t chunks = control::is_rank_ordered(settings.kind) ? ranks : 1;
  const std::uint64_t count = size / (element * chunks) * chunks;
  if (size == 0 || count > 0) return count;
  const std::string_view type = aggregation::data_type_name(settings.type);
  if (chunks == 1) {
    throw UsageError(
        fmt::format("a size of {} B holds no {}, which has {} B", size, type, element));
  }
  throw UsageError(
      fmt::format("a size of {} B holds no {} for each of {} trainers; expected {} B or more", size,
                  type, chunks, element * chunks));
}

}  // namespace gradcube::cli
