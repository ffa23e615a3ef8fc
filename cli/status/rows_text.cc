#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "cli/status/status_parts.h"
#include "cli/text/units_text.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kFewFlows = 40;
constexpr std::size_t kLongestCause = 500;

// "-" also for 0: nothing is known before a hub is made.
std::string known_bytes(const json& hub, std::string_view path) {
  return number_field(hub, path).value_or(0) > 0 ? bytes_text(hub, path) : "-";
}

std::string known_count(const json& hub, std::string_view path) {
  return count_field(hub, path).value_or(0) > 0 ? cell_text(hub, path) : "-";
}

// Of a hub's members, the one that called.
std::string first_address(const json& hub, std::string_view path) {
  const json& members = items(hub, path);
  return members.empty() ? "-" : address_text(members[0]);
}

std::string trainers_of_members(const json& hub, std::string_view path) {
  return grouped(items(hub, path).size() * count_field(hub, "trainers_per_server").value_or(1));
}

std::string cause_text(const json& hub, std::string_view path) {
  return control::printable(text_field(hub, path).value_or(""), kLongestCause);
}

void add_counters(const json& counters, const std::string& prefix, ReportTable& table) {
  for (const auto& [key, value] : counters.items()) {
    const std::string name = prefix.empty() ? key : prefix + ": " + key;
    if (value.is_object()) {
      add_counters(value, name, table);
    } else {
      table.add({name, cell_text(counters, key)});
    }
  }
}

}  // namespace

std::string address_at(const json& row, std::string_view path) {
  return address_text(field(row, path));
}

ReportTable rows_table(const json& rows, std::initializer_list<JsonColumn> columns) {
  std::vector<ReportColumn> titles;
  for (const JsonColumn& column : columns) titles.push_back({column.title, "", column.align});
  ReportTable table(std::move(titles));
  for (const json& row : rows) {
    std::vector<Cell> cells;
    for (const JsonColumn& column : columns) cells.emplace_back(column.text(row, column.path));
    table.add(cells);
  }
  return table;
}

std::string switches_text(const json& status) {
  return rows_table(items(status, "switches"), {{"switch", "name", cell_text, Align::left},
                                                {"level", "level"},
                                                {"forwarded", "forwarded"},
                                                {"bytes", "bytes", bytes_text},
                                                {"queue peak", "queue_peak_bytes", bytes_text},
                                                {"marked", "marked"},
                                                {"dropped: queue", "dropped_queue"},
                                                {"loss", "dropped_loss"},
                                                {"down", "dropped_down"},
                                                {"duplicated", "duplicated"},
                                                {"reordered", "reordered"},
                                                {"corrupted", "corrupted"}})
      .text_below("switches");
}

std::string hubs_text(const json& status) {
  return rows_table(items(status, "hubs"), {{"job", "job", cell_text, Align::left},
                                            {"id", "id", id_text},
                                            {"server", "address", address_at},
                                            {"state", "state", cell_text, Align::left},
                                            {"called by", "members", first_address},
                                            {"trainers", "members", trainers_of_members},
                                            {"keys", "keys", known_count},
                                            {"weights", "weights_bytes", known_bytes},
                                            {"memory", "memory_bytes", known_bytes},
                                            {"packets", "packets_reserved_bytes", known_bytes},
                                            {"user", "uid", id_text},
                                            {"", "why", cause_text, Align::left}})
      .text_below("hubs that are aggregated for jobs of other servers");
}

std::string flows_text(const json& status, bool all_flows) {
  const json& flows = items(status, "flows");
  const std::uint64_t count = count_field(status, "flow_count").value_or(flows.size());
  if (count == 0) return "";
  if (count > kFewFlows && (!all_flows || flows.empty())) {
    return fmt::format("\nflows: {}; `gradcube status --flows` lists them\n", count);
  }
  const ReportTable table = rows_table(flows, {{"flow: job", "job"},
                                               {"server", "server", address_at},
                                               {"thread", "thread"},
                                               {"stage", "stage", cell_text, Align::left},
                                               {"peer", "peer", address_at},
                                               {"sent", "sent"},
                                               {"resent", "resent"},
                                               {"probes", "probes"},
                                               {"timeouts", "timeouts"},
                                               {"in flight", "in_flight"},
                                               {"srtt us", "srtt_us"},
                                               {"credit", "credit"}});
  return fmt::format(
      "\n{}{}", table.text(),
      flows.size() < count ? fmt::format("and {} more\n", count - flows.size()) : "");
}

std::string counters_text(const json& status) {
  const json& counters = field(status, "counters");
  if (!counters.is_object() || counters.empty()) return "";
  ReportTable table({{"counter", "", Align::left}, {"value"}});
  add_counters(counters, "", table);
  return fmt::format("\n{}", table.text());
}

}  // namespace gradcube::cli
