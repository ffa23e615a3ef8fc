#include "control/settings/cluster_settings.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/settings/switch_parts.h"

namespace gradcube::control {
namespace {

constexpr unsigned kMaxLcore = 1023;
constexpr unsigned kFrameOverhead = 18;  // Ethernet's header and FCS
constexpr std::uint64_t kLongestQueue = 1'000'000'000;
static_assert(kMaxEmbeddedServers <= bcube::kMaxAddressedServers,
              "every port of a cluster that runs has addresses");

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

// Neither the kernel's bridges nor what is between hosts does what an emulated switch does.
void validate_real_links(const ClusterSettings& s) {
  const Setting* given = given_emulation(s);
  if (given == nullptr) return;
  throw UsageError(fmt::format(
      "{} is for emulated switches, those of the embedded and the memif fabric: the "
      "{} fabric's {}",
      given->name, fabric_name(s.fabric),
      s.fabric == FabricKind::veth ? "are the kernel's bridges, which have a rate and a queue alone"
                                   : "links are the network's between the hosts"));
}

void validate_fabric(const ClusterSettings& s) {
  validate_hosts(s.topology, s.hosts);
  validate_interfaces(s.topology, s.interfaces);
  require(s.interfaces.empty() || (!s.hosts.empty() && s.fabric == FabricKind::embedded),
          "interfaces: expected `hosts` as well, the addresses by which the servers' hosts are "
          "reached, and no fabric");
  require(s.hosts.empty() || s.fabric == FabricKind::udp || !s.interfaces.empty(),
          fmt::format("hosts: they are for the udp fabric, and the fabric is {}: expected --fabric "
                      "udp, or in [link] of a cluster file fabric = \"udp\"",
                      fabric_name(s.fabric)));
  require(
      s.topology.space().rails() == 1 || (s.fabric == FabricKind::embedded && s.interfaces.empty()),
      fmt::format("servers with several ports on a switch are for the embedded fabric; the {} "
                  "has one port for each level",
                  s.interfaces.empty() ? fmt::format("{} fabric", fabric_name(s.fabric))
                                       : "cluster on interfaces"));
  if (s.fabric != FabricKind::embedded && s.hosts.empty()) validate_bed(s);
  if (s.fabric == FabricKind::veth || s.fabric == FabricKind::udp) validate_real_links(s);
  if (s.fabric == FabricKind::memif) (void)SwitchParts(s.topology.space(), kMaxSwitchProcessPorts);
}

// By writing each value as text and reading it again.
void validate_each(const ClusterSettings& s) {
  for (const Setting& setting : kSettings) {
    const std::string text = setting.form.text(s);
    ClusterSettings read = s;
    if (!text.empty()) setting.form.apply(read, text, setting.name);
  }
}

}  // namespace

std::string_view fabric_name(FabricKind fabric) {
  return kFabricNames[static_cast<std::size_t>(fabric)];
}

std::string_view authentication_name(Authentication authentication) {
  return kAuthenticationNames[static_cast<std::size_t>(authentication)];
}

std::string_view idle_name(Idle idle) { return kIdleNames[static_cast<std::size_t>(idle)]; }

namespace {

// What the topology cannot have, validate() refuses: rates and topology are given in any order.
void take_own_ports(ClusterSettings& settings) {
  try {
    settings.topology = settings.topology.with_own_ports(settings.rates.own_ports());
  } catch (const std::invalid_argument&) {
    settings.topology = settings.topology.with_own_ports({});
  }
}

}  // namespace

void apply_topology(ClusterSettings& settings, std::string_view text, std::string_view where) {
  settings.topology = parse_topology(text, where);
  settings.aggregators.clear();
  take_own_ports(settings);
}

void apply_rates(ClusterSettings& settings, std::string_view text, std::string_view where) {
  settings.rates = parse_link_rates(text, where);
  take_own_ports(settings);
}

void apply_absent(ClusterSettings& settings, std::string_view text, std::string_view where) {
  settings.topology = parse_absent(settings.topology, text, where);
}

void apply_aggregators(ClusterSettings& settings, std::string_view text, std::string_view where) {
  settings.aggregators = parse_aggregators(settings.topology, text, where);
}

std::string topology_text(const ClusterSettings& settings) { return settings.topology.spec(); }

std::string rates_text(const ClusterSettings& settings) { return rates_text(settings.rates); }

std::string absent_text(const ClusterSettings& settings) { return settings.topology.absent_text(); }

std::string aggregators_text(const ClusterSettings& settings) {
  return aggregators_text(settings.topology, settings.aggregators);
}

std::vector<unsigned> parse_lcores(std::string_view text, std::string_view where) {
  const auto refuse = [&](std::string_view what) {
    throw UsageError(
        fmt::format("{} {}: {}; expected a list of lcores 0..{}, for example 0,1 or 0-3", where,
                    quoted(text), what, kMaxLcore));
  };
  std::vector<unsigned> lcores;
  for (const std::string_view item : split(text, ',')) {
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

// Other processes, which may work elsewhere, get it, too.
std::string parse_key_file(std::string_view text, std::string_view where) {
  if (text.empty()) throw UsageError(fmt::format("{}: expected the path of a file", where));
  return std::filesystem::absolute(text).string();
}

std::string key_file_text(const std::string& path) { return path; }

std::string lcores_text(const std::vector<unsigned>& lcores) {
  return fmt::format("{}", fmt::join(lcores, ","));
}

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) names.push_back(setting.name);
  return names;
}

void apply_setting(ClusterSettings& settings, std::string_view name, std::string_view text,
                   std::string_view where) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name) return setting.form.apply(settings, text, where);
  }
  throw UsageError(fmt::format("{}: there is no setting {}; expected {}", where, quoted(name),
                               fmt::join(setting_names(), ", ")));
}

const Setting* given_emulation(const ClusterSettings& settings) {
  const ClusterSettings defaults;
  const auto* const given =
      std::find_if(std::begin(kSettings), std::end(kSettings), [&](const Setting& setting) {
        return setting.reach == Reach::emulated &&
               setting.form.text(settings) != setting.form.text(defaults);
      });
  return given == std::end(kSettings) ? nullptr : given;
}

void validate(const ClusterSettings& s) {
  validate_fabric(s);
  require(s.topology.servers() <= kMaxEmbeddedServers,
          fmt::format("{} has {} servers; expected at most {}: the embedded fabric runs them "
                      "all in one process (`gradcube plan` takes any topology)",
                      s.topology.spec(), s.topology.servers(), kMaxEmbeddedServers));
  validate_aggregators(s.topology, s.aggregators);
  validate_each(s);
  s.link_rates().validate(s.topology);
  const std::uint64_t two_frames = 2 * (std::uint64_t{s.mtu} + kFrameOverhead);
  require(s.queue_bytes >= two_frames && s.queue_bytes <= kLongestQueue,
          fmt::format("the queue of a switch port is {}; at MTU {} expected {} bytes (two "
                      "full frames) to {}",
                      format_size(s.queue_bytes), s.mtu, two_frames, format_size(kLongestQueue)));
  require(s.ecn_threshold() <= s.queue_bytes,
          fmt::format("the ECN threshold is {}; expected at most the queue, {}",
                      format_size(s.ecn_threshold()), format_size(s.queue_bytes)));
}

nlohmann::ordered_json to_json(const ClusterSettings& settings) {
  nlohmann::ordered_json json;
  for (const Setting& setting : kSettings) {
    json[std::string(setting.name)] = setting.form.text(settings);
  }
  return json;
}

ClusterSettings settings_from_json(const nlohmann::ordered_json& json) {
  constexpr std::string_view kWhere = "the cluster's settings:";
  ClusterSettings settings;
  try {
    for (const Setting& setting : kSettings) {
      const auto text = json.at(std::string(setting.name)).get<std::string>();
      if (!text.empty()) {
        setting.form.apply(settings, text, fmt::format("{} {}", kWhere, setting.name));
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(
        fmt::format("{} they are not as written by gradcube: {}", kWhere, error.what()));
  }
  validate(settings);
  return settings;
}

}  // namespace gradcube::control
