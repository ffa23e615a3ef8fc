#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/model/node_counts.h"
#include "cli/text/closest.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/phub_model.h"

namespace gradcube::cli {
namespace {

using control::UsageError;
using control::model::kPhubNetworks;
using control::model::kPsLayouts;
using control::model::PhubNetwork;
using control::model::PsLayout;
using nlohmann::ordered_json;

constexpr std::string_view kAllNetworks = "all";
constexpr std::string_view kOwn = "own";  // the network that --bytes and --compute describe

struct HubModelOptions {
  std::string network = std::string(kAllNetworks);
  std::string bytes;
  std::string compute;
  std::string workers = "8";
  bool json = false;
};

struct HubRow {
  std::string_view network;
  std::uint64_t workers;
  PsLayout layout;
  double bits_per_second;
};

std::vector<std::string> known_networks() {
  std::vector<std::string> names;
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
  std::vector<PhubNetwork> networks;
  for (const PhubNetwork& network : kPhubNetworks) {
    if (options.network == kAllNetworks || options.network == network.name) {
      networks.push_back(network);
    }
  }
  if (networks.empty()) {
    const std::vector<std::string> known = known_networks();
    const auto meant = closest(options.network, known);
    throw UsageError(fmt::format(
        "--network {}: there is no such network{}; expected {}, {}, or --bytes and --compute",
        control::quoted(options.network), meant ? fmt::format(" (did you mean {}?)", *meant) : "",
        kAllNetworks, fmt::join(known, ", ")));
  }
  return networks;
}

ordered_json rows_json(const std::vector<HubRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const HubRow& row : rows) {
    list.push_back({{"network", row.network},
                    {"workers", row.workers},
                    {"layout", control::model::name_of(row.layout)},
                    {"bits_per_second", row.bits_per_second}});
  }
  return {{"rows", std::move(list)}};
}

std::string rows_text(const std::vector<HubRow>& rows) {
  TextTable table({{"network", Align::left},
                   {"workers"},
                   {"layout", Align::left},
                   {"at least"},
                   {"parameter servers", Align::left}});
  for (const HubRow& row : rows) {
    table.add_row({std::string(row.network), grouped(row.workers),
                   std::string(control::model::name_of(row.layout)),
                   human_rate(row.bits_per_second),
                   std::string(control::model::description_of(row.layout))});
  }
  return "# sent and received together, by the host of a parameter server, so that communication "
         "is hidden\n" +
         table.text();
}

int run_hub(const HubModelOptions& options) {
  const std::vector<std::uint64_t> workers = parse_node_counts(options.workers, "--workers");
  std::vector<HubRow> rows;
  for (const PhubNetwork& network : networks_of(options)) {
    for (const std::uint64_t N : workers) {
      for (const PsLayout layout : kPsLayouts) {
        rows.push_back(
            {network.name, N, layout,
             control::model::hiding_bits_per_second(layout, N, network.bytes, network.seconds)});
      }
    }
  }
  write_output(options.json ? rows_json(rows).dump() + "\n" : rows_text(rows));
  return 0;
}

}  // namespace

void add_model_hub(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "hub", "The least bandwidth of parameter servers with which communication is hidden");
  auto options = std::make_shared<HubModelOptions>();
  command
      ->add_option("--network", options->network,
                   fmt::format("all, {}", fmt::join(known_networks(), ", ")))
      ->capture_default_str();
  command
      ->add_option("--bytes", options->bytes, "Gradients of a network of your own, with --compute")
      ->check(not_empty());
  command
      ->add_option("--compute", options->compute, "What a worker computes in an iteration: 161ms")
      ->check(not_empty());
  command
      ->add_option("--workers", options->workers,
                   "Numbers of workers: 8, 4,8, or 4..64 for each that is twice the one before")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "PHub, Figure 4 and Table 2. The networks and their times on a GTX 1080 Ti are those of its\n"
      "section 4.2.\n"
      "Examples:\n"
      "  gradcube model hub --network resnet50 --workers 8..64\n"
      "  gradcube model hub --bytes 12.5M --compute 20ms --json");
  command->callback([options, &action] { action = [options] { return run_hub(*options); }; });
}

}  // namespace gradcube::cli
