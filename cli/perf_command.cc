#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "aggregation/element.h"
#include "cli/available_memory.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/control_client.h"
#include "cli/interrupt.h"
#include "cli/job_text.h"
#include "cli/json_fields.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/perf_report.h"
#include "cli/perf_runner.h"
#include "cli/perf_sizes.h"
#include "cli/status_text.h"
#include "cli/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/plan/algorithms.h"
#include "control/plan/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using control::UsageError;
using nlohmann::json;

constexpr std::uint64_t kMostFactor = 1'000'000;
constexpr double kShortestTimeout = 0.001;  // seconds
constexpr double kLongestTimeout = 1e6;

struct PerfOptions {
  std::string collective;
  std::string sizes = "1K,64K,1M,12.5M";
  std::string min_bytes;
  std::string max_bytes;
  std::string factor = "2";
  std::string dtype = "float32";
  std::string op = "sum";
  std::string job;
  double timeout_seconds = 60;
  bool json = false;
  PerfSettings settings;
};

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

// A type whose elements can be added.
aggregation::DataType parse_type(const std::string& text) {
  using namespace aggregation;
  const auto adds = [](DataType type) { return supports(type, Operation::sum); };
  const std::optional<DataType> type = parse_data_type(text);
  if (type && adds(*type)) return *type;
  throw UsageError(fmt::format("--dtype: {} {}; expected {}", control::quoted(text),
                               type ? "cannot be added" : "is not known",
                               names_of<DataType>(kDataTypes, data_type_name, adds)));
}

aggregation::Operation parse_operation_of(aggregation::DataType type, const std::string& text) {
  using namespace aggregation;
  const auto fits = [type](Operation operation) { return supports(type, operation); };
  const std::string expected = names_of<Operation>(kOperations, operation_name, fits);
  const std::optional<Operation> operation = parse_operation(text);
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

PerfSettings settings_of(const PerfOptions& options) {
  if (options.collective != "allreduce") {
    throw UsageError(fmt::format("perf: there is no collective {}; expected allreduce",
                                 control::quoted(options.collective)));
  }
  PerfSettings settings = options.settings;
  settings.type = parse_type(options.dtype);
  settings.operation = parse_operation_of(settings.type, options.op);
  settings.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3));
  return settings;
}

std::vector<std::uint64_t> sizes_of(const PerfOptions& options) {
  if (options.min_bytes.empty() && options.max_bytes.empty()) return parse_size_list(options.sizes);
  if (options.min_bytes.empty()) throw UsageError("--max-bytes needs --min-bytes beside it");
  SizeRange range;
  range.least = control::parse_size(options.min_bytes, "--min-bytes");
  range.most = options.max_bytes.empty() ? range.least
                                         : control::parse_size(options.max_bytes, "--max-bytes");
  range.factor = control::parse_integer(options.factor, "--factor", 2, kMostFactor);
  return sizes_of(range);
}

// What the status says of the cluster, checked against the plan that follows from it.
struct Cluster {
  control::Plan plan;
  std::vector<std::string> sockets;  // by server number
  PerfLinks links;
  json rate_bps;
};

Cluster read_cluster(const RunDirectory& directory) {
  const json status = ask_status(directory);
  const auto topology =
      control::parse_topology(topology_text(field(status, "topology")), "the daemon's topology");
  std::vector<std::string> sockets(topology.servers());
  const json& servers = field(status, "servers");
  if (servers.is_array()) {
    for (const json& server : servers) {
      const auto id = control::parse_server(topology, address_text(field(server, "address")),
                                            "the daemon's list of servers");
      sockets[id] = text_field(server, "socket").value_or("");
    }
  }
  for (control::ServerId id = 0; id < topology.servers(); ++id) {
    if (sockets[id].empty()) {
      sockets[id] = directory.server_socket(topology.space().suffix(id)).string();
    }
  }
  const auto rate = number_field(status, "rate_bps");
  return Cluster{
      .plan = control::make_plan(control::kDefaultAlgorithm, topology, "perf"),
      .sockets = std::move(sockets),
      .links = {.servers = topology.servers(), .levels = topology.levels(), .rate_bps = rate},
      .rate_bps = field(status, "rate_bps")};
}

std::optional<std::uint64_t> resent_so_far(const RunDirectory& directory) {
  return count_field(ask_status(directory), "counters/resent");
}

// What the figures are of.
void print_head(const Cluster& cluster, const std::string& job) {
  print("# {}, {} servers, {}, job {}\n", cluster.plan.topology().spec(), cluster.plan.servers(),
        cluster.links.rate_bps ? fmt::format("{:.4g} Mbit/s", *cluster.links.rate_bps / 1e6)
                               : "no rate",
        job);
  print("{}", table_head());
  flush_output();
}

void print_foot(const PerfSettings& settings, const std::vector<PerfRow>& rows,
                const PerfLinks& links, std::uint64_t wrong) {
  if (const auto average = average_busbw(rows, links)) {
    print("# average bus bandwidth: {:.3g} GB/s\n", *average);
  }
  if (!settings.check) return;
  if (wrong == 0) {
    print("# every element on every server has the bits of the plan's order of addition\n");
  } else {
    print("# {} elements are WRONG\n", wrong);
  }
}

// What the daemon knows about an all-reduce that is not done: for whom the job waits, and what the
// switches do to its frames.
std::string explanation(const RunDirectory& directory, const std::string& job_name) {
  json status;
  try {
    status = ask_status(directory);
  } catch (const SetupError& error) {
    return fmt::format("; {}", error.what());
  }
  std::string text;
  for (const json& job : items(status, "jobs")) {
    if (text_field(job, "name") != job_name) continue;
    const std::string wait = wait_text(job);
    text = wait.empty() ? "; all trainers have submitted it" : "; the job " + wait;
  }
  return fmt::format("{}; impairments: {}; `gradcube status` shows more", text,
                     impairments_summary(status));
}

PerfRow measure(PerfRunner& runner, std::uint64_t count, const RunDirectory& directory,
                const std::string& job) {
  const auto before = resent_so_far(directory);
  try {
    PerfRow row = runner.run(count);
    const auto after = resent_so_far(directory);
    if (before && after && *after >= *before) row.resent = *after - *before;
    return row;
  } catch (const IterationTimeout& error) {
    throw SetupError(error.what() + explanation(directory, job));
  }
}

json report_json(const Cluster& cluster, const std::vector<PerfRow>& rows) {
  auto results = nlohmann::ordered_json::array();
  for (const PerfRow& row : rows) results.push_back(row_json(row, cluster.links));
  const auto average = average_busbw(rows, cluster.links);
  return {{"topology", control::topology_json(cluster.plan.topology())},
          {"rate_bps", cluster.rate_bps},
          {"results", results},
          {"average_busbw", average ? json(*average) : json(nullptr)}};
}

// Refuses what would make the kernel kill processes: all gradients are in memory at once.
void require_memory(const Cluster& cluster, const PerfSettings& settings,
                    const std::vector<std::uint64_t>& sizes) {
  const double largest = static_cast<double>(*std::max_element(sizes.begin(), sizes.end()));
  const double needed = largest * settings.in_flight * cluster.plan.servers();
  const auto available = available_memory();
  if (!available || needed <= static_cast<double>(*available)) return;
  throw SetupError(fmt::format(
      "gradients of {} on {} servers{} take {}, and {} are available", human_bytes(largest),
      cluster.plan.servers(),
      settings.in_flight > 1 ? fmt::format(", {} in flight,", settings.in_flight) : std::string(),
      human_bytes(needed), human_bytes(static_cast<double>(*available))));
}

int run_perf(const PerfOptions& options) {
  const PerfSettings settings = settings_of(options);
  const std::vector<std::uint64_t> sizes = sizes_of(options);
  const std::size_t element = aggregation::element_bytes(settings.type);
  for (const std::uint64_t size : sizes) {
    if (size > 0 && size < element) {
      throw control::UsageError(fmt::format("a size of {} B holds no {}, which has {} B", size,
                                            data_type_name(settings.type), element));
    }
  }
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const Cluster cluster = read_cluster(directory);
  require_memory(cluster, settings, sizes);
  const std::string job = options.job.empty() ? fmt::format("perf-{}", getpid()) : options.job;
  PerfRunner runner(cluster.plan, cluster.sockets, job, settings);

  std::vector<PerfRow> rows;
  std::uint64_t wrong = 0;
  if (!options.json) print_head(cluster, job);
  for (const std::uint64_t size : sizes) {
    rows.push_back(measure(runner, size / element, directory, job));
    wrong += rows.back().wrong.value_or(0);
    if (options.json) continue;
    write_output(table_row(rows.back(), cluster.links));
    flush_output();
  }
  if (options.json) {
    write_output(report_json(cluster, rows).dump() + "\n");
  } else {
    print_foot(settings, rows, cluster.links, wrong);
  }
  flush_output();
  return wrong == 0 ? 0 : kExitFailure;
}

void add_size_options(CLI::App* command, PerfOptions* options) {
  CLI::Option* sizes =
      command->add_option("--sizes", options->sizes, "Bytes of each gradient, as a list")
          ->capture_default_str();
  CLI::Option* least =
      command->add_option("-b,--min-bytes", options->min_bytes, "The first size of a range");
  CLI::Option* most = command->add_option("-e,--max-bytes", options->max_bytes,
                                          "The range's end (default: --min-bytes)");
  CLI::Option* factor = command
                            ->add_option("-f,--factor", options->factor,
                                         "Each size of the range is this many times the last")
                            ->capture_default_str();
  for (CLI::Option* option : {least, most, factor}) option->check(not_empty())->excludes(sizes);
  factor->needs(least);
}

void add_options(CLI::App* command, PerfOptions* options) {
  command->add_option("collective", options->collective, "allreduce")->required();
  add_size_options(command, options);
  command->add_option("-n,--iterations", options->settings.iterations, "Measured per size")
      ->capture_default_str()
      ->check(whole_number_in(1, 1'000'000));
  command
      ->add_option("-w,--warmup", options->settings.warmup, "Iterations before the measured ones")
      ->capture_default_str()
      ->check(whole_number_in(0, 1'000'000));
  command
      ->add_option("-d,--dtype", options->dtype,
                   "float32, float64, float16, bfloat16, int32, int64, int8, uint8")
      ->capture_default_str();
  command->add_option("-o,--op", options->op, "sum, average (not of int8 and uint8), min, max")
      ->capture_default_str();
  command->add_option("--in-flight", options->settings.in_flight, "Collectives at once")
      ->capture_default_str()
      ->check(whole_number_in(1, 1024));
  command->add_option("--job", options->job, "The job's name (default: perf-<pid>)")
      ->check(job_name());
  command->add_option("--timeout", options->timeout_seconds, "Seconds that an iteration may take")
      ->capture_default_str()
      ->check(seconds_in(kShortestTimeout, kLongestTimeout));
  command->add_flag("--check", options->settings.check,
                    "Compare every element on every server with the result of a scalar addition");
  command->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace

void add_perf(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "perf", "Measure collectives on the running cluster, with one trainer per server");
  auto options = std::make_shared<PerfOptions>();
  add_options(command, options.get());
  command->footer(
      "K, M and G are decimal, Ki, Mi and Gi binary. A row shows one size:\n"
      "  min, median, max   time of an iteration, from the first start to the last end\n"
      "  algbw              bytes / median time\n"
      "  busbw              algbw x 2(N-1)/N, as in nccl-tests\n"
      "  bound, eff         2(N-1)/(kN) x bytes at the links' rate; bound / median\n"
      "  wrong              elements that differ from the expected bits (--check)\n"
      "  resent             segments that were sent again\n"
      "Examples:\n"
      "  gradcube perf allreduce -b 1K -e 16M -f 2\n"
      "  gradcube perf allreduce --sizes 1K,64K,12.5M --iterations 5 --check\n"
      "  gradcube perf allreduce --sizes 97M --dtype bfloat16 --op average --json");
  command->callback([options, &action] { action = [options] { return run_perf(*options); }; });
}

}  // namespace gradcube::cli
