#include "cli/status_text.h"

#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "cli/json_fields.h"
#include "cli/text_table.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kFewFlows = 40;

std::string rate_text(const json& status) {
  const auto rate = number_field(status, "rate_bps");
  return rate ? human_rate(*rate) : "as fast as it goes";
}

std::string bytes_text(const json& object, std::string_view path) {
  const auto bytes = number_field(object, path);
  return bytes ? human_bytes(*bytes) : "-";
}

std::string list_text(const json& array) {
  if (!array.is_array() || array.empty()) return "-";
  std::string text;
  for (const json& item : array) {
    if (!text.empty()) text += ',';
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

const json& items(const json& status, std::string_view key) {
  static const json kNone = json::array();
  const json& list = field(status, key);
  return list.is_array() ? list : kNone;
}

std::string servers_text(const json& status) {
  TextTable table({{"server"},
                   {"trainers"},
                   {"level"},
                   {"rx packets"},
                   {"rx bytes"},
                   {"tx packets"},
                   {"tx bytes"},
                   {"socket", Align::left}});
  for (const json& server : items(status, "servers")) {
    std::vector<std::string> head = {address_text(field(server, "address")),
                                     cell_text(server, "trainers")};
    std::string socket = cell_text(server, "socket");
    if (items(server, "ports").empty()) {
      table.add_row({head[0], head[1], "-", "-", "-", "-", "-", socket});
    }
    for (const json& port : items(server, "ports")) {
      table.add_row({head[0], head[1], cell_text(port, "level"), cell_text(port, "rx_packets"),
                     bytes_text(port, "rx_bytes"), cell_text(port, "tx_packets"),
                     bytes_text(port, "tx_bytes"), socket});
      head = {"", ""};
      socket.clear();
    }
  }
  return table.empty() ? "" : fmt::format("\nservers\n{}", table.text());
}

std::string switches_text(const json& status) {
  TextTable table({{"switch", Align::left},
                   {"level"},
                   {"forwarded"},
                   {"bytes"},
                   {"queue peak"},
                   {"marked"},
                   {"dropped: queue"},
                   {"loss"},
                   {"duplicated"},
                   {"reordered"},
                   {"corrupted"}});
  for (const json& one : items(status, "switches")) {
    table.add_row({cell_text(one, "name"), cell_text(one, "level"), cell_text(one, "forwarded"),
                   bytes_text(one, "bytes"), bytes_text(one, "queue_peak_bytes"),
                   cell_text(one, "marked"), cell_text(one, "dropped_queue"),
                   cell_text(one, "dropped_loss"), cell_text(one, "duplicated"),
                   cell_text(one, "reordered"), cell_text(one, "corrupted")});
  }
  return table.empty() ? "" : fmt::format("\nswitches\n{}", table.text());
}

std::string jobs_text(const json& status) {
  TextTable table({{"job", Align::left},
                   {"id"},
                   {"epoch"},
                   {"state", Align::left},
                   {"collectives"},
                   {"trainers", Align::left}});
  for (const json& job : items(status, "jobs")) {
    std::string trainers;
    for (const json& trainer : items(job, "trainers")) {
      if (!trainers.empty()) trainers += ' ';
      trainers += address_text(field(trainer, "address"));
      if (const auto pid = count_field(trainer, "pid")) trainers += fmt::format(" pid {}", *pid);
      if (trainers.size() > 100) {
        trainers += " ...";
        break;
      }
    }
    table.add_row({cell_text(job, "name"), cell_text(job, "id"), cell_text(job, "epoch"),
                   cell_text(job, "state"), cell_text(job, "collectives"), trainers});
  }
  return table.empty() ? "\njobs: none\n" : fmt::format("\njobs\n{}", table.text());
}

std::string flows_text(const json& status, bool all_flows) {
  const json& flows = items(status, "flows");
  if (flows.empty()) return "";
  if (flows.size() > kFewFlows && !all_flows) {
    return fmt::format("\nflows: {}; `gradcube status --flows` lists them\n", flows.size());
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

std::string counters_text(const json& status) {
  const json& counters = field(status, "counters");
  if (!counters.is_object() || counters.empty()) return "";
  TextTable table({{"counter", Align::left}, {"value"}});
  add_counters(counters, "", &table);
  return fmt::format("\n{}", table.text());
}

}  // namespace

std::string topology_text(const json& topology) {
  const auto kind = text_field(topology, "kind");
  const auto n = count_field(topology, "n");
  auto k = count_field(topology, "k");
  if (!k) k = count_field(topology, "h");
  if (kind == "star") {
    const auto servers = count_field(topology, "servers");
    return servers ? fmt::format("star:{}", *servers) : "";
  }
  if (!kind || !n || !k) return "";
  return fmt::format("{}:{},{}", *kind, *n, *k);
}

std::string impairments_text(const json& impairments) {
  std::string text;
  for (const std::string_view key : {"loss", "duplicate", "reorder", "corrupt"}) {
    const double probability = number_field(impairments, key).value_or(0);
    if (probability == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {:.4g} %", key, probability * 100);
  }
  if (text.empty()) return "none";
  if (const auto seed = count_field(impairments, "seed")) text += fmt::format(", seed {}", *seed);
  return text;
}

std::string status_summary(const json& status) {
  const json& topology = field(status, "topology");
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12}  {}\n", name, value);
  };
  const std::string topology_name = topology_text(topology);
  line("cluster",
       fmt::format("{}: {} servers, {} fabric", topology_name.empty() ? "-" : topology_name,
                   cell_text(topology, "servers"), cell_text(status, "fabric")));
  const auto uptime = number_field(status, "uptime_seconds");
  const auto pid = count_field(status, "pid");
  line("daemon",
       fmt::format("gradcubed {}, pid {}, up for {}", cell_text(status, "version"),
                   pid ? std::to_string(*pid) : "-", uptime ? human_seconds(*uptime) : "-"));
  const auto mtu = count_field(status, "mtu");
  line("links", fmt::format("{}, MTU {}", rate_text(status), mtu ? std::to_string(*mtu) : "-"));
  line("impairments", impairments_text(field(status, "impairments")));
  line("cores", fmt::format("{}, idle {}, {}", list_text(field(status, "lcores")),
                            cell_text(status, "idle"), cell_text(status, "instruction_set")));
  const auto huge = flag_field(status, "huge_pages");
  line("memory", fmt::format("daemon {} (of it pools {}), trainers' buffers {}, {} pages",
                             bytes_text(status, "memory/daemon_bytes"),
                             bytes_text(status, "memory/pool_bytes"),
                             bytes_text(status, "memory/trainer_bytes"),
                             !huge   ? "-"
                             : *huge ? "huge"
                                     : "ordinary"));
  return text;
}

std::string status_text(const json& status, bool all_flows) {
  return status_summary(status) + servers_text(status) + switches_text(status) + jobs_text(status) +
         flows_text(status, all_flows) + counters_text(status);
}

}  // namespace gradcube::cli
