#include "cli/status/flow_text.h"

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>

#include "cli/text/json_fields.h"
#include "cli/text/text_table.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kFewFlows = 40;

void add_counters(const json& counters, const std::string& prefix, TextTable* table) {
  for (const auto& [key, value] : counters.items()) {
    const std::string name = prefix.empty() ? key : prefix + ": " + key;
    if (value.is_object()) {
      add_counters(value, name, table);
    } else {
      table->add_row({name, cell_text(counters, key)});
    }
  }
}

}  // namespace

std::string flows_text(const json& status, bool all_flows) {
  const json& flows = items(status, "flows");
  const std::uint64_t count = count_field(status, "flow_count").value_or(flows.size());
  if (count == 0) return "";
  if (count > kFewFlows && (!all_flows || flows.size() < count)) {
    return fmt::format("\nflows: {}; `gradcube status --flows` lists them\n", count);
  }
  TextTable table({{"flow: job"},
                   {"server"},
                   {"thread"},
                   {"stage", Align::left},
                   {"peer"},
                   {"sent"},
                   {"resent"},
                   {"probes"},
                   {"timeouts"},
                   {"in flight"},
                   {"srtt us"},
                   {"credit"}});
  for (const json& flow : flows) {
    table.add_row(
        {cell_text(flow, "job"), address_text(field(flow, "server")), cell_text(flow, "thread"),
         cell_text(flow, "stage"), address_text(field(flow, "peer")), cell_text(flow, "sent"),
         cell_text(flow, "resent"), cell_text(flow, "probes"), cell_text(flow, "timeouts"),
         cell_text(flow, "in_flight"), cell_text(flow, "srtt_us"), cell_text(flow, "credit")});
  }
  return fmt::format("\n{}", table.text());
}

std::string counters_text(const json& status) {
  const json& counters = field(status, "counters");
  if (!counters.is_object() || counters.empty()) return "";
  TextTable table({{"counter", Align::left}, {"value"}});
  add_counters(counters, "", &table);
  return fmt::format("\n{}", table.text());
}

}  // namespace gradcube::cli
