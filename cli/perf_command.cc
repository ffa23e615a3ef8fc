#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "aggregation/element.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/control_client.h"
#include "cli/interrupt.h"
#include "cli/json_fields.h"
#include "cli/perf_report.h"
#include "cli/perf_runner.h"
#include "cli/size_list.h"
#include "cli/status_text.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::UsageError;
using nlohmann::json;

struct PerfOptions {
  std::string collective;
  std::string sizes = "1K,64K,1M,12.5M";
  std::string dtype = "float32";
  std::string op = "sum";
  std::string job;
  double timeout_seconds = 60;
  bool json = false;
  PerfSettings settings;
};

template <typename T, typename Parse, typename Name>
T parse_name(const std::string& text, const char* flag, std::size_t values, Parse parse,
             Name name) {
  if (const std::optional<T> value = parse(text)) return *value;
  std::string accepted;
  for (std::size_t i = 0; i < values; ++i) {
    accepted += fmt::format("{}{}", i == 0 ? "" : ", ", name(static_cast<T>(i)));
  }
  throw UsageError(fmt::format("{}: {} is not known; accepted are {}", flag, text, accepted));
}

PerfSettings settings_of(const PerfOptions& options) {
  using namespace aggregation;
  if (options.collective != "allreduce") {
    throw UsageError(
        fmt::format("perf: there is no collective {}; accepted is allreduce", options.collective));
  }
  PerfSettings settings = options.settings;
  settings.type =
      parse_name<DataType>(options.dtype, "--dtype", kDataTypes, parse_data_type, data_type_name);
  settings.operation =
      parse_name<Operation>(options.op, "--op", kOperations, parse_operation, operation_name);
  settings.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1e3));
  return settings;
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
      .plan = control::make_plan("bml", topology, "perf"),
      .sockets = std::move(sockets),
      .links = {.servers = topology.servers(), .levels = topology.levels(), .rate_bps = rate},
      .rate_bps = field(status, "rate_bps")};
}

std::optional<std::uint64_t> resent_so_far(const RunDirectory& directory) {
  return count_field(ask_status(directory), "counters/resent");
}

// What the figures are of.
void print_head(const Cluster& cluster, const std::string& job) {
  fmt::print("# {}, {} servers, {}, job {}\n", cluster.plan.topology().spec(),
             cluster.plan.servers(),
             cluster.links.rate_bps ? fmt::format("{:.4g} Mbit/s", *cluster.links.rate_bps / 1e6)
                                    : "no rate",
             job);
  fmt::print("{}", table_head());
  std::fflush(stdout);
}

void print_foot(const PerfSettings& settings, std::uint64_t wrong) {
  if (!settings.check) return;
  if (wrong == 0) {
    fmt::print("# every element on every server has the bits of the plan's order of addition\n");
  } else {
    fmt::print("# {} elements are WRONG\n", wrong);
  }
}

int run_perf(const PerfOptions& options) {
  const PerfSettings settings = settings_of(options);
  const std::vector<std::uint64_t> sizes = parse_size_list(options.sizes);
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const Cluster cluster = read_cluster(directory);
  const std::string job = options.job.empty() ? fmt::format("perf-{}", getpid()) : options.job;
  PerfRunner runner(cluster.plan, cluster.sockets, job, settings);

  auto results = nlohmann::ordered_json::array();
  std::uint64_t wrong = 0;
  if (!options.json) print_head(cluster, job);
  auto resent = resent_so_far(directory);
  for (const std::uint64_t size : sizes) {
    PerfRow row = runner.run(size / aggregation::element_bytes(settings.type));
    const auto resent_now = resent_so_far(directory);
    if (resent && resent_now && *resent_now >= *resent) row.retransmitted = *resent_now - *resent;
    resent = resent_now;
    wrong += row.wrong.value_or(0);
    results.push_back(row_json(row, cluster.links));
    if (!options.json) {
      fmt::print("{}", table_row(row, cluster.links));
      std::fflush(stdout);
    }
  }
  if (options.json) {
    const nlohmann::ordered_json report = {
        {"topology", control::topology_json(cluster.plan.topology())},
        {"rate_bps", nlohmann::ordered_json(cluster.rate_bps)},
        {"results", results}};
    fmt::print("{}\n", report.dump());
  } else {
    print_foot(settings, wrong);
  }
  return wrong == 0 ? 0 : kExitFailure;
}

void add_options(CLI::App* command, PerfOptions* options) {
  command->add_option("collective", options->collective, "allreduce")->required();
  command
      ->add_option("--sizes", options->sizes,
                   "Bytes of each gradient, as a list; K, M and G are decimal")
      ->capture_default_str();
  command->add_option("--iterations", options->settings.iterations, "Measured per size")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000000u));
  command->add_option("--warmup", options->settings.warmup, "Iterations before those")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1000000u));
  command
      ->add_option("--dtype", options->dtype, "float32, float64, float16, bfloat16, int32, int64")
      ->capture_default_str();
  command->add_option("--op", options->op, "sum, average, min, max")->capture_default_str();
  command->add_option("--in-flight", options->settings.in_flight, "Collectives at once")
      ->capture_default_str()
      ->check(CLI::Range(1u, 64u));
  command->add_option("--job", options->job, "The job's name (default: perf-<pid>)");
  command->add_option("--timeout", options->timeout_seconds, "Seconds that an iteration may take")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e6));
  command->add_flag("--check", options->settings.check,
                    "Compare every element on every server with an oracle");
  command->add_flag("--json", options->json, "One JSON object on standard output");
}

}  // namespace

void add_perf(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "perf", "Measure collectives on the running cluster, one trainer per server");
  auto options = std::make_shared<PerfOptions>();
  add_options(command, options.get());
  command->footer(
      "A row is one size: the least, median and greatest time of an iteration; algbw, bytes by "
      "median\n"
      "time; busbw, algbw x 2(N-1)/N; bound, 2(N-1)/(kN) x bytes at the links' rate; eff, bound "
      "by\n"
      "median; wrong, elements that differ from the oracle's; resent, segments sent again.\n"
      "Examples:\n"
      "  gradcube perf allreduce --sizes 1K,64K,12.5M --iterations 5 --check\n"
      "  gradcube perf allreduce --sizes 97M --dtype bfloat16 --op average --json");
  command->callback([options, &action] { action = [options] { return run_perf(*options); }; });
}

}  // namespace gradcube::cli
