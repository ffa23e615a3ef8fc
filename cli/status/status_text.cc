#include "cli/status/status_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "cli/status/status_parts.h"
#include "cli/text/json_fields.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestSentence = 400;

// Of all links, or of each level's.
std::string rate_text(const json& status) {
  const auto rate = number_field(status, "rate_bps");
  if (rate) return human_rate(*rate);
  std::string text;
  std::size_t level = 0;
  for (const json& of_level : items(status, "rate_bps")) {
    text += fmt::format("{}{} at level {}", text.empty() ? "" : ", ",
                        of_level.is_number() ? human_rate(of_level.get<double>()) : "-", level++);
  }
  return text.empty() ? "as fast as it goes" : text;
}

std::string port_rate_text(const json& port) {
  const auto rate = number_field(port, "rate_bps");
  return rate ? human_rate(*rate) : "-";
}

std::string list_text(const json& array) {
  if (!array.is_array() || array.empty()) return "-";
  std::string text;
  for (const json& item : array) {
    if (!text.empty()) text += ',';
    text += control::printable(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return text;
}

// What tells a server's ports apart: their level, and where a level may have several, their number.
std::string_view port_key(const json& status) {
  const bool several =
      field(field(status, "topology"), "kind") == "torus" || !items(status, "own_ports").empty();
  return several ? "port" : "level";
}

// The same port of the same server in an earlier status of the same daemon; nothing where
// there is none.
const json& port_before(const json& before, const json& server, const json& port) {
  static const json kNothing;
  for (const json& other : items(before, "servers")) {
    if (field(other, "address") != field(server, "address")) continue;
    for (const json& candidate : items(other, "ports")) {
      if (field(candidate, "level") == field(port, "level") &&
          field(candidate, "port") == field(port, "port")) {
        return candidate;
      }
    }
  }
  return kNothing;
}

// How much a counter grew per second.
std::optional<double> growth(const json& now, const json& before, std::string_view counter,
                             double seconds) {
  const auto new_count = count_field(now, counter);
  const auto old_count = count_field(before, counter);
  if (!new_count || !old_count || *new_count < *old_count || seconds <= 0) return std::nullopt;
  return static_cast<double>(*new_count - *old_count) / seconds;
}

// Seconds between two statuses by the daemon's own clock; 0 when they cannot be compared.
double seconds_between(const json& before, const json& now) {
  if (field(before, "pid") != field(now, "pid")) return 0;
  const auto start = number_field(before, "uptime_seconds");
  const auto end = number_field(now, "uptime_seconds");
  return start && end && *end > *start ? *end - *start : 0;
}

std::string packet_rate_text(std::optional<double> rate) {
  return rate ? grouped(static_cast<std::uint64_t>(std::llround(*rate))) : "-";
}

std::string bit_rate_text(std::optional<double> bytes_per_second) {
  return bytes_per_second ? human_rate(*bytes_per_second * 8) : "-";
}

// Packets and bits per second of every port, as testpmd shows them.
std::string rates_text(const json& status, const json& before) {
  const std::string_view key = port_key(status);
  ReportTable table({{"server"},
                     {std::string(key)},
                     {"rx packets"},
                     {"rx packets/s"},
                     {"rx bit/s"},
                     {"tx packets"},
                     {"tx packets/s"},
                     {"tx bit/s"}});
  const double seconds = seconds_between(before, status);
  for (const json& server : items(status, "servers")) {
    std::string address = address_text(field(server, "address"));
    for (const json& port : items(server, "ports")) {
      const json& old = port_before(before, server, port);
      table.add({address, cell_text(port, key), cell_text(port, "rx_packets"),
                 packet_rate_text(growth(port, old, "rx_packets", seconds)),
                 bit_rate_text(growth(port, old, "rx_bytes", seconds)),
                 cell_text(port, "tx_packets"),
                 packet_rate_text(growth(port, old, "tx_packets", seconds)),
                 bit_rate_text(growth(port, old, "tx_bytes", seconds))});
      address.clear();
    }
  }
  return table.text_below("ports");
}

std::string servers_text(const json& status) {
  const std::string_view key = port_key(status);
  ReportTable table({{"server"},
                     {"trainers"},
                     {std::string(key)},
                     {"rate"},
                     {"rx packets"},
                     {"rx bytes"},
                     {"tx packets"},
                     {"tx bytes"},
                     {"socket", "", Align::left}});
  for (const json& server : items(status, "servers")) {
    const auto host = text_field(server, "host");
    std::vector<std::string> head = {
        address_text(field(server, "address")) + (host ? " " + *host : ""),
        cell_text(server, "trainers")};
    std::string socket = cell_text(server, "socket");
    if (items(server, "ports").empty()) {
      table.add({head[0], head[1], "-", "-", "-", "-", "-", "-", socket});
    }
    for (const json& port : items(server, "ports")) {
      table.add({head[0], head[1], cell_text(port, key), port_rate_text(port),
                 cell_text(port, "rx_packets"), bytes_text(port, "rx_bytes"),
                 cell_text(port, "tx_packets"), bytes_text(port, "tx_bytes"), socket});
      head = {"", ""};
      socket.clear();
    }
  }
  return table.text_below("servers");
}

bool is_silent(const json& server) { return text_field(server, "why").has_value(); }

// Servers whose daemon has ended or is silent, where each server has one.
std::string silent_text(const json& status) {
  ReportTable table({{"server"}, {"pid"}, {"no answer, because", "", Align::left}});
  for (const json& server : items(status, "servers")) {
    if (!is_silent(server)) continue;
    const bool has_pid = count_field(server, "pid").value_or(0) > 0;
    table.add({address_at(server, "address"), has_pid ? id_text(server, "pid") : "-",
               cell_text(server, "why")});
  }
  return table.text_below("servers that do not answer");
}

// Links that servers have found to be down.
std::string links_down_text(const json& status) {
  const std::string_view key = port_key(status);
  ReportTable table({{"server"}, {std::string(key)}, {"no link to", "", Align::left}});
  for (const json& server : items(status, "servers")) {
    for (const json& port : items(server, "ports")) {
      const std::string neighbours = addresses_text(items(port, "down"));
      if (neighbours.empty()) continue;
      table.add({address_text(field(server, "address")), cell_text(port, key), neighbours});
    }
  }
  return table.text_below("links found to be down");
}

// Ports that hear what shows that they are cabled or set wrongly: a sentence each.
std::string wrong_ports_text(const json& status) {
  std::string lines;
  for (const json& server : items(status, "servers")) {
    for (const json& port : items(server, "ports")) {
      const auto wrong = text_field(port, "wrong");
      if (wrong) lines += fmt::format(" {}\n", control::printable(*wrong, kLongestSentence));
    }
  }
  return lines.empty() ? "" : fmt::format("\nports that are cabled or set wrongly\n{}", lines);
}

constexpr const char* kNoImpairments = "none";
bool is_down(const json& impairments) { return !flag_field(impairments, "up").value_or(true); }

// "loss 1 %, reorder 5 %, mtu 1400"; empty when all are 0.
std::string probabilities_text(const json& impairments) {
  std::string text;
  for (const std::string_view key : {"loss", "duplicate", "reorder", "corrupt"}) {
    const double probability = number_field(impairments, key).value_or(0);
    if (probability == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {:.4g} %", key, probability * 100);
  }
  if (const auto mtu = count_field(impairments, "mtu")) {
    text += fmt::format("{}mtu {}", text.empty() ? "" : ", ", *mtu);
  }
  return text;
}

// Links of such a daemon count as down though nobody has taken them down. Empty where all answer.
std::string silent_switches_text(const json& status) {
  const json& daemons = items(status, "switch_daemons");
  const auto silent = std::count_if(daemons.begin(), daemons.end(), [](const json& daemon) {
    return text_field(daemon, "why").has_value();
  });
  if (silent == 0) return "";
  return fmt::format("; no answer from {} of {} daemons of switches, whose links count as down",
                     silent, daemons.size());
}

// "down", "down, loss 1 %", "loss 1 %", "none"
std::string impairments_text(const json& impairments, const std::string& probabilities) {
  if (!is_down(impairments)) return probabilities.empty() ? kNoImpairments : probabilities;
  return probabilities.empty() ? "down" : "down, " + probabilities;
}

// " (1 down)"
std::string number_down(const json& links) {
  const auto down = std::count_if(links.begin(), links.end(), is_down);
  return down > 0 ? fmt::format(" ({} down)", down) : "";
}

}  // namespace

std::string impairments_summary(const json& status) {
  const json& impairments = field(status, "impairments");
  std::string probabilities = probabilities_text(impairments);
  const auto seed = count_field(impairments, "seed");
  if (seed && !probabilities.empty()) probabilities += fmt::format(", seed {}", *seed);
  std::string text = impairments_text(impairments, probabilities);
  const json& links = items(status, "impaired_links");
  if (links.empty()) return text + silent_switches_text(status);
  const char* const plural = links.size() == 1 ? "" : "s";
  const std::string some = fmt::format("{} link{}", links.size(), plural);
  if (text == kNoImpairments)
    return fmt::format("on {}{}, else {}{}", some, number_down(links), text,
                       silent_switches_text(status));
  return fmt::format("{}; {} differ{}{}{}", text, some, *plural != 0 ? "" : "s", number_down(links),
                     silent_switches_text(status));
}

std::string impaired_links_text(const json& status) {
  const auto text = [](const json& link, std::string_view) {
    return impairments_text(link, probabilities_text(link));
  };
  return rows_table(items(status, "impaired_links"), {{"switch", "switch", cell_text, Align::left},
                                                      {"server", "server", address_at},
                                                      {"port", "port"},
                                                      {"impairments", "", text, Align::left}})
      .text_below("links that differ");
}

// By which key of the cluster servers make MACs. While `gradcube rekey` changes it: to which, and
// who has not been told.
std::string keys_text(const json& servers) {
  std::set<std::string> keys;
  std::string next;
  std::uint64_t ends_in_ms = 0;
  for (const json& server : servers) {
    const auto key = text_field(server, "key");
    if (!key) continue;
    keys.insert(control::printable(*key));
    const auto ends = count_field(server, "ends_in_ms");
    if (!ends) continue;
    ends_in_ms = std::max(ends_in_ms, *ends);
    next = cell_text(server, count_field(server, "makes_in_ms") ? "other_key" : "key");
  }
  if (keys.empty()) return "authenticated by the cluster's key";
  std::string text = fmt::format("authenticated by the key {}", fmt::join(keys, " and "));
  if (next.empty()) return text;
  text += fmt::format("; the change to {} ends in {} s", next, (ends_in_ms + 999) / 1000);
  std::string untold;
  for (const json& server : servers) {
    const bool is_told =
        field(server, "ends_in_ms").is_number() || cell_text(server, "key") == next;
    if (text_field(server, "key") && !is_told) {
      untold += " " + address_text(field(server, "address"));
    }
  }
  return untold.empty() ? text : fmt::format("{}; not told yet:{}", text, untold);
}

std::string status_summary(const json& status) {
  const json& topology = field(status, "topology");
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12}  {}\n", name, value);
  };
  const json& servers = items(status, "servers");
  const auto silent = std::count_if(servers.begin(), servers.end(), is_silent);
  line("cluster",
       fmt::format("{}: {}{}, {} fabric", cell_text(topology, "spec"), servers_count_text(topology),
                   silent == 0 ? "" : fmt::format(" ({} without an answer)", silent),
                   cell_text(status, "fabric")));
  const std::string absent = absent_text(topology);
  if (!absent.empty()) {
    line("absent", fmt::format("{}; a job on all servers runs {} if it asks for no algorithm",
                               absent, cell_text(status, "algorithm")));
  }
  const std::string aggregators = addresses_text(items(status, "aggregators"));
  if (!aggregators.empty()) {
    line("aggregators", fmt::format("{}, which take no trainers; a job on all others runs {} if it "
                                    "asks for no algorithm",
                                    aggregators, cell_text(status, "algorithm")));
  }
  if (text_field(status, "authentication") == "none") {
    line("frames", "not authenticated: whoever can send some to a server can change results");
  } else if (text_field(status, "authentication") == "key") {
    line("frames", keys_text(servers));
  }
  const auto uptime = number_field(status, "uptime_seconds");
  line("daemon", fmt::format("gradcubed {}, pid {}, up for {}", cell_text(status, "version"),
                             id_text(status, "pid"), uptime ? human_seconds(*uptime) : "-"));
  line("links", fmt::format("{}, MTU {}", rate_text(status), id_text(status, "mtu")));
  line("impairments", impairments_summary(status));
  const auto of_a_server = count_field(status, "server_lcores").value_or(1);
  line(
      "cores",
      fmt::format("{}, idle {}, {}{}", list_text(field(status, "lcores")),
                  cell_text(status, "idle"), cell_text(status, "instruction_set"),
                  of_a_server == 1 ? "" : fmt::format(", each server adds up on {}", of_a_server)));
  const auto huge = flag_field(status, "huge_pages");
  line("memory", fmt::format("daemon {} (of it pools {}), trainers' buffers {}, {} pages",
                             bytes_text(status, "memory/daemon_bytes"),
                             bytes_text(status, "memory/pool_bytes"),
                             bytes_text(status, "memory/trainer_bytes"),
                             !huge   ? "-"
                             : *huge ? "huge"
                                     : "ordinary"));
  line("packets",
       fmt::format("{} of {} reserved by jobs", bytes_text(status, "memory/packets_reserved_bytes"),
                   bytes_text(status, "memory/packets_reservable_bytes")));
  line("quota", quota_text(status));
  if (const std::string allowed = allowed_text(status); !allowed.empty()) line("allowed", allowed);
  return text;
}

std::string status_text(const json& status, const StatusView& view) {
  return status_summary(status) + impaired_links_text(status) +
         (view.rates ? rates_text(status, view.before) : servers_text(status)) +
         silent_text(status) + links_down_text(status) + wrong_ports_text(status) +
         switches_text(status) + jobs_text(status) + hubs_text(status) +
         flows_text(status, view.all_flows) + counters_text(status);
}

}  // namespace gradcube::cli
