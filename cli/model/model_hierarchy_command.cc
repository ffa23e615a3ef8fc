#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model/model_options.h"
#include "cli/model/node_counts.h"
#include "cli/text/output.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/model/phub_model.h"

namespace gradcube::cli {
namespace {

using control::model::HierarchyTimes;
using control::model::HubRates;
using nlohmann::ordered_json;

struct HierarchyOptions {
  std::string workers = "8";
  std::string racks = "2..16";
  std::string bytes = "97M";
  std::string hub = "100gbit";
  std::string core = "20gbit";
  std::string worker = "10gbit";
  bool json = false;
};

struct HierarchyRow {
  std::uint64_t workers;
  std::uint64_t racks;
  HierarchyTimes times;
};

double rate_of(const std::string& text, std::string_view option) {
  return static_cast<double>(control::parse_rate(text, option));
}

ordered_json rows_json(const std::vector<HierarchyRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const HierarchyRow& row : rows) {
    list.push_back({{"workers_per_rack", row.workers},
                    {"racks", row.racks},
                    {"flat_seconds", row.times.flat},
                    {"hierarchical_seconds", row.times.hierarchical},
                    {"pays", row.times.pays()}});
  }
  return {{"rows", std::move(list)}};
}

std::string rows_text(const std::vector<HierarchyRow>& rows, double bytes, const HubRates& rates) {
  TextTable table(
      {{"workers/rack"}, {"racks"}, {"flat"}, {"hierarchical"}, {"relative"}, {"pays"}});
  for (const HierarchyRow& row : rows) {
    table.add_row({grouped(row.workers), grouped(row.racks), human_seconds(row.times.flat),
                   human_seconds(row.times.hierarchical),
                   fmt::format("{:.3f}", row.times.hierarchical / row.times.flat),
                   row.times.pays() ? "yes" : "no"});
  }
  return fmt::format("# {}; a hub has {}, a rack's uplink {}, a worker {}\n", human_bytes(bytes),
                     human_rate(rates.hub), human_rate(rates.core), human_rate(rates.worker)) +
         table.text();
}

int run_hierarchy(const HierarchyOptions& options) {
  const auto bytes = static_cast<double>(control::parse_size(options.bytes, "--bytes"));
  if (bytes == 0) {
    throw control::UsageError("--bytes \"0\": nothing takes no time; expected 1 byte or more");
  }
  const HubRates rates{.hub = rate_of(options.hub, "--hub-rate"),
                       .core = rate_of(options.core, "--core-rate"),
                       .worker = rate_of(options.worker, "--worker-rate")};
  std::vector<HierarchyRow> rows;
  for (const std::uint64_t workers : parse_node_counts(options.workers, "--workers")) {
    for (const std::uint64_t racks : parse_node_counts(options.racks, "--racks")) {
      rows.push_back(
          {workers, racks, control::model::hierarchy_times(workers, racks, rates, bytes)});
    }
  }
  write_output(options.json ? rows_json(rows).dump() + "\n" : rows_text(rows, bytes, rates));
  return 0;
}

}  // namespace

void add_model_hierarchy(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "hierarchy", "Whether hubs that add up each rack's gradients first save time");
  auto options = std::make_shared<HierarchyOptions>();
  command->add_option("--workers", options->workers, "Workers of each rack: 8, 4,8 or 4..64")
      ->capture_default_str();
  command->add_option("--racks", options->racks, "Racks: 4, 2,3 or 2..16")->capture_default_str();
  command->add_option("--bytes", options->bytes, "Gradient of each worker: 97M")
      ->capture_default_str();
  command->add_option("--hub-rate", options->hub, "Rate of a rack's hub: 100gbit")
      ->capture_default_str();
  command->add_option("--core-rate", options->core, "Rate of a rack's uplink: 20gbit")
      ->capture_default_str();
  command->add_option("--worker-rate", options->worker, "Rate of a worker: 10gbit")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "PHub, section 3.4: `flat` is the traffic that crosses racks when all hubs share the model,\n"
      "`hierarchical` the sum within each rack and then a ring of the hubs.\n"
      "Examples:\n"
      "  gradcube model hierarchy --racks 2..16\n"
      "  gradcube model hierarchy --workers 44 --core-rate 400gbit --json");
  command->callback([options, &action] { action = [options] { return run_hierarchy(*options); }; });
}

}  // namespace gradcube::cli
