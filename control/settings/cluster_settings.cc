#include "control/settings/cluster_settings.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/settings/switch_parts.h"

namespace gradcube::control {
namespace {

constexpr unsigned kMaxLcore = 1023;
constexpr unsigned kMostServerLcores = 64;
constexpr std::uint64_t kLeastTrainerMemory = 1 << 20;
constexpr std::uint64_t kShortestGreeting = 1'000'000;
constexpr std::uint64_t kLongestGreeting = 60'000'000'000;
constexpr std::uint64_t kShortestProbing = 10'000'000;
constexpr std::uint64_t kLongestProbing = 60'000'000'000;
constexpr unsigned kFrameOverhead = 18;  // Ethernet's header and FCS
constexpr std::uint64_t kLeastPacketMemory = 1'000'000;
constexpr std::uint64_t kMostPacketMemory = 64'000'000'000;
static_assert(kMaxEmbeddedServers <= bcube::kMaxAddressedServers,
              "every port of a cluster that runs has addresses");

// "0,2" or "0-3,6".
std::vector<unsigned> parse_lcores(std::string_view text, std::string_view where) {
  const auto refuse = [&](std::string_view what) {
    throw UsageError(
        fmt::format("{} {}: {}; expected a list of lcores 0..{}, for example 0,1 or 0-3", where,
                    quoted(text), what, kMaxLcore));
  };
  std::vector<unsigned> lcores;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::string_view item = rest.substr(0, rest.find(','));
    more = item.size() < rest.size();
    rest.remove_prefix(item.size() + (more ? 1 : 0));
    const std::size_t dash = item.find('-');
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    try {
      first = parse_integer(item.substr(0, dash), where, 0, kMaxLcore);
      last = dash == std::string_view::npos
                 ? first
                 : parse_integer(item.substr(dash + 1), where, 0, kMaxLcore);
    } catch (const UsageError&) {
      refuse(fmt::format("{} is not an lcore or a range of lcores", quoted(item)));
    }
    if (first > last) refuse(fmt::format("the range {} runs backwards", quoted(item)));
    for (std::uint64_t id = first; id <= last; ++id) {
      if (std::find(lcores.begin(), lcores.end(), id) != lcores.end()) {
        refuse(fmt::format("lcore {} is named twice", id));
      }
      lcores.push_back(static_cast<unsigned>(id));
    }
  }
  return lcores;
}

Idle parse_idle(std::string_view text, std::string_view where) {
  for (const Idle idle : {Idle::spin, Idle::adaptive}) {
    if (text == idle_name(idle)) return idle;
  }
  throw UsageError(fmt::format("{} {}: expected spin or adaptive", where, quoted(text)));
}

Fabric parse_fabric(std::string_view text, std::string_view where) {
  for (const Fabric fabric : {Fabric::embedded, Fabric::memif, Fabric::veth}) {
    if (text == fabric_name(fabric)) return fabric;
  }
  throw UsageError(fmt::format("{} {}: expected embedded, memif or veth", where, quoted(text)));
}

using Apply = void (*)(ClusterSettings&, std::string_view text, std::string_view where);
struct Setting {
  std::string_view name;
  Apply apply;
};

template <double ClusterSettings::*kMember>
void apply_probability(ClusterSettings& s, std::string_view text, std::string_view where) {
  s.*kMember = parse_probability(text, where);
}

constexpr Setting kSettings[] = {
    {"topology",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.topology = parse_topology(text, where);
       s.aggregators.clear();
     }},
    {"absent", [](ClusterSettings& s, std::string_view text,
                  std::string_view where) { s.topology = parse_absent(s.topology, text, where); }},
    {"aggregators",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.aggregators = parse_aggregators(s.topology, text, where);
     }},
    {"fabric", [](ClusterSettings& s, std::string_view text,
                  std::string_view where) { s.fabric = parse_fabric(text, where); }},
    {"rate", [](ClusterSettings& s, std::string_view text,
                std::string_view where) { s.rates = parse_link_rates(text, where); }},
    {"mtu",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.mtu = static_cast<unsigned>(parse_integer(text, where, kMinMtu, kMaxMtu));
     }},
    {"delay", [](ClusterSettings& s, std::string_view text,
                 std::string_view where) { s.delay_ns = parse_duration(text, where); }},
    {"queue", [](ClusterSettings& s, std::string_view text,
                 std::string_view where) { s.queue_bytes = parse_size(text, where); }},
    {"ecn-threshold",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.ecn_threshold_bytes = parse_size(text, where);
     }},
    {"loss", apply_probability<&ClusterSettings::loss>},
    {"duplicate", apply_probability<&ClusterSettings::duplicate>},
    {"reorder", apply_probability<&ClusterSettings::reorder>},
    {"corrupt", apply_probability<&ClusterSettings::corrupt>},
    {"seed", [](ClusterSettings& s, std::string_view text,
                std::string_view where) { s.seed = parse_integer(text, where, 0, UINT64_MAX); }},
    {"packet-memory",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.packet_memory_bytes = parse_size(text, where);
     }},
    {"lcores", [](ClusterSettings& s, std::string_view text,
                  std::string_view where) { s.lcores = parse_lcores(text, where); }},
    {"server-lcores",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.server_lcores = static_cast<unsigned>(parse_integer(text, where, 1, kMostServerLcores));
     }},
    {"idle", [](ClusterSettings& s, std::string_view text,
                std::string_view where) { s.idle = parse_idle(text, where); }},
    {"trainer-memory",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.trainer_memory_bytes = parse_size(text, where);
     }},
    {"greeting",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.greeting_ns = static_cast<std::uint64_t>(parse_duration(text, where));
     }},
    {"probing",
     [](ClusterSettings& s, std::string_view text, std::string_view where) {
       s.probing_ns = static_cast<std::uint64_t>(parse_duration(text, where));
     }},
};

template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// Reads a number that must not be negative or a fraction: nlohmann's get() would convert it
// silently.
std::uint64_t whole(const nlohmann::ordered_json& json, const char* key) {
  const auto& value = json.at(key);
  if (!value.is_number_unsigned()) {
    throw UsageError(fmt::format("the cluster's settings: {} is not a whole number", key));
  }
  return value.get<std::uint64_t>();
}

std::optional<std::uint64_t> whole_or_null(const nlohmann::ordered_json& json, const char* key) {
  if (json.at(key).is_null()) return std::nullopt;
  return whole(json, key);
}

unsigned small(std::uint64_t value) {
  return static_cast<unsigned>(std::min<std::uint64_t>(value, UINT32_MAX));
}

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError(message);
}

// What has a daemon for each server.
void validate_bed(const ClusterSettings& s) {
  const std::string_view fabric = fabric_name(s.fabric);
  require(s.topology.servers() <= kMaxBedServers,
          fmt::format("{} has {} servers; the {} fabric takes at most {}, because it runs a daemon "
                      "for each of them",
                      s.topology.spec(), s.topology.servers(), fabric, kMaxBedServers));
  const std::tuple<const char*, std::optional<std::uint64_t>, std::uint64_t> memories[] = {
      {"packet memory", s.packet_memory_bytes, kLeastPacketMemory},
      {"trainers' memory", s.trainer_memory_bytes, kLeastTrainerMemory}};
  for (const auto& [name, bytes, least] : memories) {
    require(!bytes || *bytes / s.topology.servers() >= least,
            fmt::format("the {} is {}, and the daemons of the {} fabric divide it; expected {} "
                        "for each of the {}",
                        name, format_size(bytes.value_or(0)), fabric, format_size(least),
                        s.topology.servers()));
  }
}

// The kernel's links and bridges do not do what an emulated switch does.
void validate_veth(const ClusterSettings& s) {
  const std::pair<const char*, bool> settings[] = {
      {"delay", s.delay_ns != 0},  {"ecn-threshold", s.ecn_threshold_bytes.has_value()},
      {"loss", s.loss != 0},       {"duplicate", s.duplicate != 0},
      {"reorder", s.reorder != 0}, {"corrupt", s.corrupt != 0}};
  for (const auto& [name, given] : settings) {
    require(!given, fmt::format("{} is for emulated switches, those of the embedded and the memif "
                                "fabric: the veth fabric's are the kernel's bridges, which have a "
                                "rate and a queue alone",
                                name));
  }
}

}  // namespace

std::string_view fabric_name(Fabric fabric) {
  switch (fabric) {
    case Fabric::memif:
      return "memif";
    case Fabric::veth:
      return "veth";
    case Fabric::embedded:
      break;
  }
  return "embedded";
}

std::string_view idle_name(Idle idle) { return idle == Idle::spin ? "spin" : "adaptive"; }

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) names.push_back(setting.name);
  return names;
}

void apply_setting(ClusterSettings& settings, std::string_view name, std::string_view text,
                   std::string_view where) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name) return setting.apply(settings, text, where);
  }
  throw UsageError(fmt::format("{}: there is no setting {}; expected {}", where, quoted(name),
                               fmt::join(setting_names(), ", ")));
}

void validate(const ClusterSettings& s) {
  if (s.fabric != Fabric::embedded) validate_bed(s);
  if (s.fabric == Fabric::veth) validate_veth(s);
  if (s.fabric == Fabric::memif) (void)SwitchParts(s.topology.space(), kMaxSwitchProcessPorts);
  require(s.topology.servers() <= kMaxEmbeddedServers,
          fmt::format("{} has {} servers; expected at most {}: the embedded fabric runs them "
                      "all in one process (`gradcube plan` takes any topology)",
                      s.topology.spec(), s.topology.servers(), kMaxEmbeddedServers));
  validate_aggregators(s.topology, s.aggregators);
  require(s.mtu >= kMinMtu && s.mtu <= kMaxMtu,
          fmt::format("the MTU is {}; expected {}..{}", s.mtu, kMinMtu, kMaxMtu));
  s.rates.validate(s.topology);
  require(s.delay_ns >= 0 && s.delay_ns <= 3'600'000'000'000,
          "the delay is out of range: expected 0 to one hour");
  const std::uint64_t greeting = s.greeting_ns.value_or(0);
  require(greeting == 0 || (greeting >= kShortestGreeting && greeting <= kLongestGreeting),
          fmt::format("the interval of greetings is {}; expected 0 (none), or {} to {}",
                      format_duration(static_cast<std::int64_t>(greeting)),
                      format_duration(kShortestGreeting), format_duration(kLongestGreeting)));
  const std::uint64_t probing = s.probing_ns.value_or(0);
  require(probing == 0 || (probing >= kShortestProbing && probing <= kLongestProbing),
          fmt::format("the interval of path probes is {}; expected 0 (none), or {} to {}",
                      format_duration(static_cast<std::int64_t>(probing)),
                      format_duration(kShortestProbing), format_duration(kLongestProbing)));
  const std::uint64_t two_frames = 2 * (std::uint64_t{s.mtu} + kFrameOverhead);
  require(s.queue_bytes >= two_frames && s.queue_bytes <= 1'000'000'000,
          fmt::format("the queue of a switch port is {}; at MTU {} expected {} bytes (two "
                      "full frames) to 1G",
                      format_size(s.queue_bytes), s.mtu, two_frames));
  require(s.ecn_threshold() <= s.queue_bytes,
          fmt::format("the ECN threshold is {}; expected at most the queue, {}",
                      format_size(s.ecn_threshold()), format_size(s.queue_bytes)));
  for (const double p : {s.loss, s.duplicate, s.reorder, s.corrupt}) {
    require(p >= 0 && p <= 1, fmt::format("a probability is {}; expected 0..1", p));
  }
  const std::uint64_t packet_memory = s.packet_memory_bytes.value_or(kLeastPacketMemory);
  require(packet_memory >= kLeastPacketMemory && packet_memory <= kMostPacketMemory,
          fmt::format("the packet memory is {}; expected {} to {}", format_size(packet_memory),
                      format_size(kLeastPacketMemory), format_size(kMostPacketMemory)));
  require(!s.trainer_memory_bytes || *s.trainer_memory_bytes >= kLeastTrainerMemory,
          fmt::format("the trainers' memory is {}; expected {} or more",
                      format_size(s.trainer_memory_bytes.value_or(0)),
                      format_size(kLeastTrainerMemory)));
  const std::set<unsigned> distinct(s.lcores.begin(), s.lcores.end());
  require(
      distinct.size() == s.lcores.size() && (distinct.empty() || *distinct.rbegin() <= kMaxLcore),
      fmt::format("the lcores are not accepted: each is 0..{} and named once", kMaxLcore));
  require(
      s.server_lcores >= 1 && s.server_lcores <= kMostServerLcores,
      fmt::format("a server has {} lcores; expected 1 to {}", s.server_lcores, kMostServerLcores));
}

nlohmann::ordered_json to_json(const ClusterSettings& s) {
  return {{"topology", s.topology.spec()},
          {"absent", s.topology.absent_text()},
          {"aggregators", aggregators_text(s.topology, s.aggregators)},
          {"fabric", fabric_name(s.fabric)},
          {"rate_bps", to_json(s.rates)},
          {"mtu", s.mtu},
          {"delay_ns", static_cast<std::uint64_t>(s.delay_ns)},
          {"queue_bytes", s.queue_bytes},
          {"ecn_threshold_bytes", or_null(s.ecn_threshold_bytes)},
          {"loss", s.loss},
          {"duplicate", s.duplicate},
          {"reorder", s.reorder},
          {"corrupt", s.corrupt},
          {"seed", s.seed},
          {"packet_memory_bytes", or_null(s.packet_memory_bytes)},
          {"lcores", s.lcores},
          {"server_lcores", s.server_lcores},
          {"idle", idle_name(s.idle)},
          {"trainer_memory_bytes", or_null(s.trainer_memory_bytes)},
          {"greeting_ns", or_null(s.greeting_ns)},
          {"probing_ns", or_null(s.probing_ns)}};
}

ClusterSettings settings_from_json(const nlohmann::ordered_json& json) {
  constexpr std::string_view kWhere = "the cluster's settings:";
  ClusterSettings s;
  try {
    s.topology = parse_topology(json.at("topology").get<std::string>(), kWhere);
    s.topology = parse_absent(s.topology, json.at("absent").get<std::string>(), kWhere);
    s.aggregators =
        parse_aggregators(s.topology, json.at("aggregators").get<std::string>(), kWhere);
    s.fabric = parse_fabric(json.at("fabric").get<std::string>(), kWhere);
    s.rates = link_rates_from_json(json.at("rate_bps"), kWhere);
    s.mtu = small(whole(json, "mtu"));
    s.delay_ns =
        static_cast<std::int64_t>(std::min<std::uint64_t>(whole(json, "delay_ns"), INT64_MAX));
    s.queue_bytes = whole(json, "queue_bytes");
    s.ecn_threshold_bytes = whole_or_null(json, "ecn_threshold_bytes");
    s.loss = json.at("loss").get<double>();
    s.duplicate = json.at("duplicate").get<double>();
    s.reorder = json.at("reorder").get<double>();
    s.corrupt = json.at("corrupt").get<double>();
    s.seed = whole(json, "seed");
    s.packet_memory_bytes = whole_or_null(json, "packet_memory_bytes");
    s.lcores = json.at("lcores").get<std::vector<unsigned>>();
    s.server_lcores = small(whole(json, "server_lcores"));
    s.idle = parse_idle(json.at("idle").get<std::string>(), kWhere);
    s.trainer_memory_bytes = whole_or_null(json, "trainer_memory_bytes");
    s.greeting_ns = whole_or_null(json, "greeting_ns");
    s.probing_ns = whole_or_null(json, "probing_ns");
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(
        fmt::format("{} they are not as written by gradcube: {}", kWhere, error.what()));
  }
  validate(s);
  return s;
}

}  // namespace gradcube::control
