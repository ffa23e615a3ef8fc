#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <vector>

#include "cli/model/model_commands.h"
#include "cli/model/node_counts.h"
#include "cli/text/closest.h"
#include "cli/text/option_checks.h"
#include "cli/text/report.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/model/phub_model.h"

namespace gradcube::cli {
namespace {

using control::UsageError;
using control::model::kPhubNetworks;
using control::model::kPsLayouts;
using control::model::PhubNetwork;
using control::model::PsLayout;

constexpr std::string_view kAllNetworks = "all";
constexpr std::string_view kOwn = "own";  // the network that --bytes and --compute describe

struct HubModelOptions {
  std::string network = std::string(kAllNetworks);
  std::string bytes;
  std::string compute;
  std::string workers = "8";
  std::string racks;
  std::string hub = "100gbit";
  std::string core = "20gbit";
  std::string worker = "10gbit";
  bool json = false;
};

std::vector<std::string> known_networks() {
  std::vector<std::string> names = {std::string(kAllNetworks)};
  for (const PhubNetwork& network : kPhubNetworks) names.emplace_back(network.name);
  return names;
}

PhubNetwork own_network(const HubModelOptions& options) {
  if (options.network != kAllNetworks) {
    throw UsageError(
        "--network: --bytes and --compute are a network of your own; expected one of them, or "
        "--network alone");
  }
  if (options.bytes.empty() || options.compute.empty()) {
    throw UsageError(
        "--bytes and --compute: a network has a size and a time; expected both, for example "
        "--bytes 97M --compute 161ms");
  }
  const auto bytes = control::parse_size(options.bytes, "--bytes");
  const auto nanoseconds = control::parse_duration(options.compute, "--compute");
  if (bytes == 0 || nanoseconds == 0) {
    throw UsageError("--bytes and --compute: expected more than 0 of both");
  }
  return {kOwn, static_cast<double>(bytes), static_cast<double>(nanoseconds) * 1e-9};
}

std::vector<PhubNetwork> networks_of(const HubModelOptions& options) {
  if (!options.bytes.empty() || !options.compute.empty()) return {own_network(options)};
  require_known("--network", "network", options.network, known_networks(),
                ", or --bytes and --compute");
  std::vector<PhubNetwork> networks;
  for (const PhubNetwork& network : kPhubNetworks) {
    if (options.network == kAllNetworks || options.network == network.name) {
      networks.push_back(network);
    }
  }
  return networks;
}

Report bandwidth_report(const HubModelOptions& options) {
  const std::vector<std::uint64_t> workers = parse_node_counts(options.workers, "--workers");
  Report report;
  report.line(
      "# sent and received together, by the host of a parameter server, so that communication is "
      "hidden");
  ReportTable& table = report.table("rows", {{"network", "network", Align::left},
                                             {"workers", "workers"},
                                             {"layout", "layout", Align::left},
                                             {"at least", "bits_per_second"},
                                             {"parameter servers", "", Align::left}});
  for (const PhubNetwork& network : networks_of(options)) {
    for (const std::uint64_t N : workers) {
      for (const PsLayout layout : kPsLayouts) {
        table.add({network.name, cell::count(N), control::model::name_of(layout),
                   cell::rate(control::model::hiding_bits_per_second(layout, N, network.bytes,
                                                                     network.seconds)),
                   control::model::description_of(layout)});
      }
    }
  }
  return report;
}

double rate_of(const std::string& text, std::string_view option) {
  return static_cast<double>(control::parse_rate(text, option));
}

// Whether hubs that add up each rack's gradients first save time.
Report hierarchy_report(const HubModelOptions& options) {
  const auto bytes = static_cast<double>(
      control::parse_size(options.bytes.empty() ? "97M" : options.bytes, "--bytes"));
  if (bytes == 0) {
    throw UsageError("--bytes \"0\": nothing takes no time; expected 1 byte or more");
  }
  const control::model::HubRates rates{.hub = rate_of(options.hub, "--hub-rate"),
                                       .core = rate_of(options.core, "--core-rate"),
                                       .worker = rate_of(options.worker, "--worker-rate")};
  Report report;
  report.line(fmt::format("# {}; a hub has {}, a rack's uplink {}, a worker {}", human_bytes(bytes),
                          human_rate(rates.hub), human_rate(rates.core), human_rate(rates.worker)));
  ReportTable& table = report.table("rows", {{"workers/rack", "workers_per_rack"},
                                             {"racks", "racks"},
                                             {"flat", "flat_seconds"},
                                             {"hierarchical", "hierarchical_seconds"},
                                             {"relative", ""},
                                             {"pays", "pays"}});
  for (const std::uint64_t workers : parse_node_counts(options.workers, "--workers")) {
    for (const std::uint64_t racks : parse_node_counts(options.racks, "--racks")) {
      const auto times = control::model::hierarchy_times(workers, racks, rates, bytes);
      table.add({cell::count(workers), cell::count(racks), cell::seconds(times.flat),
                 cell::seconds(times.hierarchical),
                 cell::shown(fmt::format("{:.3f}", times.hierarchical / times.flat)),
                 cell::flag(times.pays())});
    }
  }
  return report;
}

int run_hub(const HubModelOptions& options) {
  (options.racks.empty() ? bandwidth_report(options) : hierarchy_report(options))
      .write(options.json);
  return 0;
}

// With --racks, a cluster of several racks.
void add_rack_options(CLI::App& command, HubModelOptions& options) {
  CLI::Option* racks = command.add_option(
      "--racks", options.racks,
      "Whether hubs that add up each rack's gradients first save time: 4, 2,3 or 2..16 racks of "
      "--workers each, with gradients of --bytes [97M]");
  racks->excludes(command.get_option("--network"))->excludes(command.get_option("--compute"));
  const auto add = [&](const char* name, std::string& rate, const char* help) {
    command.add_option(name, rate, help)->capture_default_str()->needs(racks);
  };
  add("--hub-rate", options.hub, "Rate of a rack's hub");
  add("--core-rate", options.core, "Rate of a rack's uplink");
  add("--worker-rate", options.worker, "Rate of a worker");
}

}  // namespace

void add_model_hub(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "hub", "Parameter servers: the least bandwidth that hides communication, or hubs of racks");
  auto options = std::make_shared<HubModelOptions>();
  add_text(command, "--network", options->network,
           fmt::format("{}", fmt::join(known_networks(), ", ")));
  add_text(command, "--bytes", options->bytes,
           "Gradients of a network of your own, with --compute");
  add_text(command, "--compute", options->compute, "What a worker computes in an iteration: 161ms");
  add_text(command, "--workers", options->workers,
           "Numbers of workers: 8, 4,8, or 4..64 for each that is twice the one before");
  add_rack_options(*command, *options);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "PHub, Figure 4 and Table 2. The networks and their times on a GTX 1080 Ti are those of\n"
      "its section 4.2.\n"
      "With --racks its section 3.4: `flat` is the traffic that crosses racks when all hubs\n"
      "share the model, `hierarchical` the sum within each rack and then a ring of the hubs.\n"
      "Examples:\n"
      "  gradcube model hub --network resnet50 --workers 8..64\n"
      "  gradcube model hub --bytes 12.5M --compute 20ms --json\n"
      "  gradcube model hub --racks 2..16 --workers 44 --core-rate 400gbit");
  command->callback([options, &action] { action = [options] { return run_hub(*options); }; });
}

}  // namespace gradcube::cli
