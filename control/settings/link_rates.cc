#include "control/settings/link_rates.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::control {
namespace {

constexpr std::string_view kLevel = "level";
constexpr std::string_view kServer = "server";
constexpr std::string_view kForm =
    "one rate for all links, or one for each level: level0=10gbit,level1=1gbit; and behind it "
    "those "
    "of servers with ports of their own: 1gbit,server8=4x10gbit";

[[noreturn]] void refuse(std::string_view where, std::string_view text, std::string_view what) {
  throw UsageError(fmt::format("{} {}: {}; expected {}", where, quoted(text), what, kForm));
}

// Adds the ports of "server8=4x10gbit", or "server8=10gbit". `text` is the whole list.
void parse_server_item(std::string_view item, std::string_view text, std::string_view where,
                       std::vector<PortGroup>& own_ports) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    refuse(where, text, fmt::format("{} names no rate", quoted(item)));
  }
  const std::string_view number = item.substr(kServer.size(), equals - kServer.size());
  PortGroup own;
  own.server = static_cast<ServerId>(
      parse_integer(number, fmt::format("{}: the server", where), 0, bcube::kMaxServers - 1));
  std::string_view rate = item.substr(equals + 1);
  if (const std::size_t times = rate.find('x'); times != std::string_view::npos) {
    own.ports = static_cast<unsigned>(parse_integer(
        rate.substr(0, times), fmt::format("{}: the ports of server {}", where, own.server), 1,
        bcube::kMostRails));
    rate.remove_prefix(times + 1);
  }
  own.rate_bps = parse_rate(rate, fmt::format("{}: the rate of server {}", where, own.server));
  const auto place =
      std::lower_bound(own_ports.begin(), own_ports.end(), own.server,
                       [](const PortGroup& each, ServerId server) { return each.server < server; });
  if (place != own_ports.end() && place->server == own.server) {
    refuse(where, text, fmt::format("server {} is named twice", own.server));
  }
  own_ports.insert(place, own);
}

// Sets the rate of "level0=10gbit". `text` is the whole list.
void parse_item(std::string_view item, std::string_view text, std::string_view where,
                std::vector<std::uint64_t>& rates) {
  const std::size_t equals = item.find('=');
  if (!item.starts_with(kLevel) || equals == std::string_view::npos) {
    refuse(where, text, fmt::format("{} names no level and its rate", quoted(item)));
  }
  const std::string_view number = item.substr(kLevel.size(), equals - kLevel.size());
  const std::string_view rate = item.substr(equals + 1);
  const auto level = static_cast<std::size_t>(
      parse_integer(number, fmt::format("{}: the level", where), 0, kMaxDimensions - 1));
  if (rates.size() <= level) rates.resize(level + 1);
  if (rates[level] != 0) refuse(where, text, fmt::format("level {} is named twice", level));
  if (rate == "unlimited" || rate == "none") {
    refuse(where, text,
           fmt::format("level {} cannot go without a rate beside levels that have one, because "
                       "flows may pass both; give it a high one",
                       level));
  }
  rates[level] = parse_rate(rate, fmt::format("{}: the rate of level {}", where, level));
}

}  // namespace

std::uint64_t LinkRates::of(unsigned level) const {
  if (!by_level_) return rates_.empty() ? 0 : rates_.front();
  return level < rates_.size() ? rates_[level] : 0;
}

std::uint64_t LinkRates::of_port(ServerId server, unsigned level) const {
  for (const PortGroup& own : own_ports_) {
    if (own.server == server) return own.rate_bps;
  }
  return of(level);
}

LinkRates LinkRates::with_own_ports(std::vector<PortGroup> own_ports) const {
  LinkRates rates = *this;
  rates.own_ports_ = std::move(own_ports);
  return rates;
}

std::uint64_t LinkRates::slowest() const {
  std::uint64_t least = rates_.empty() ? 0 : *std::min_element(rates_.begin(), rates_.end());
  for (const PortGroup& own : own_ports_) least = std::min(least, own.rate_bps);
  return least;
}

LinkRates LinkRates::with_uplinks(const Topology& topology,
                                  std::optional<std::uint64_t> oversubscription) const {
  if (by_level_ || !limited() || !topology.is_tree()) {
    if (!oversubscription) return *this;
    throw UsageError(fmt::format(
        "oversubscription {} is for a tree with one rate, that of the servers' links; "
        "expected it beside topology tree:AxB and rate 10gbit, or a rate for each level",
        *oversubscription));
  }
  std::vector<std::uint64_t> by_level = rates_;
  for (unsigned level = 1; level < topology.link_levels(); ++level) {
    const std::uint64_t below = topology.dimensions()[level - 1].radix * by_level.back();
    by_level.push_back(std::min(below / oversubscription.value_or(1), kMostRate));
  }
  return LinkRates(std::move(by_level)).with_own_ports(own_ports_);
}

Topology LinkRates::on(const Topology& topology) const {
  std::vector<std::uint64_t> by_level;
  for (unsigned level = 0; level < topology.link_levels(); ++level) by_level.push_back(of(level));
  return topology.with_rates(by_level).with_own_ports(own_ports_);
}

void LinkRates::validate(const Topology& topology) const {
  const unsigned levels = topology.link_levels();
  if (by_level_ && rates_.size() > levels) {
    throw UsageError(fmt::format("there is a rate for level {}, but the highest level of {} is {}",
                                 rates_.size() - 1, topology.spec(), levels - 1));
  }
  for (unsigned level = 0; limited() && level < levels; ++level) {
    const std::uint64_t rate = of(level);
    if (by_level_ && rate == 0) {
      throw UsageError(fmt::format("the rate of level {} is missing: {} has {} levels; expected {}",
                                   level, topology.spec(), levels, kForm));
    }
    if (rate < kLeastRate || rate > kMostRate) {
      throw UsageError(fmt::format("the rate of level {} is out of range: expected {} to {}", level,
                                   format_rate(kLeastRate), format_rate(kMostRate)));
    }
  }
  for (const PortGroup& own : own_ports_) {
    if (own.rate_bps >= kLeastRate && own.rate_bps <= kMostRate) continue;
    throw UsageError(fmt::format("the rate of server {} is out of range: expected {} to {}",
                                 own.server, format_rate(kLeastRate), format_rate(kMostRate)));
  }
  try {
    static_cast<void>(topology.with_own_ports(own_ports_));
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("ports of servers: {}", error.what()));
  }
}

LinkRates parse_link_rates(std::string_view text, std::string_view where) {
  if (text.find('=') == std::string_view::npos) return LinkRates(parse_rate(text, where));
  std::vector<std::uint64_t> rates;
  std::vector<PortGroup> own_ports;
  std::uint64_t of_all = 0;
  for (const std::string_view item : split(text, ',')) {
    const bool is_first = item.data() == text.data();
    if (item.starts_with(kServer)) {
      parse_server_item(item, text, where, own_ports);
    } else if (is_first && item.find('=') == std::string_view::npos) {
      of_all = parse_rate(item, where);
    } else {
      parse_item(item, text, where, rates);
    }
  }
  if (of_all != 0 && !rates.empty()) {
    refuse(where, text, "it has a rate for all links and others for levels");
  }
  if (of_all == 0 && rates.empty()) {
    refuse(where, text,
           "only servers' own ports have a rate, and flows pass others', too; give those one");
  }
  const LinkRates of_links = of_all != 0 ? LinkRates(of_all) : LinkRates(std::move(rates));
  return of_links.with_own_ports(std::move(own_ports));
}

std::string rates_text(const LinkRates& rates) {
  std::string text;
  if (!rates.by_level_ && rates.limited()) text = format_rate(rates.rates_.front());
  for (std::size_t level = 0; rates.by_level_ && level < rates.rates_.size(); ++level) {
    if (rates.rates_[level] == 0) continue;
    text += fmt::format("{}{}{}={}", text.empty() ? "" : ",", kLevel, level,
                        format_rate(rates.rates_[level]));
  }
  for (const PortGroup& own : rates.own_ports_) {
    text +=
        fmt::format(",{}{}={}{}", kServer, own.server,
                    own.ports > 1 ? fmt::format("{}x", own.ports) : "", format_rate(own.rate_bps));
  }
  return text;
}

nlohmann::ordered_json own_ports_json(const std::vector<PortGroup>& own_ports) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PortGroup& own : own_ports) {
    list.push_back({{"server", own.server}, {"ports", own.ports}, {"rate_bps", own.rate_bps}});
  }
  return list;
}

std::vector<PortGroup> own_ports_from_json(const nlohmann::ordered_json& json,
                                           std::string_view where) {
  std::vector<PortGroup> own_ports;
  try {
    for (const auto& each : json) {
      own_ports.push_back({each.at("server").get<ServerId>(), each.at("ports").get<unsigned>(),
                           each.at("rate_bps").get<std::uint64_t>()});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(fmt::format("{} the servers' own ports are no list of such", where));
  }
  return own_ports;
}

nlohmann::ordered_json to_json(const LinkRates& rates) {
  if (!rates.limited()) return nullptr;
  if (rates.by_level_) return rates.rates_;
  return rates.rates_.front();
}

LinkRates link_rates_from_json(const nlohmann::ordered_json& json, std::string_view where) {
  if (json.is_null()) return {};
  if (json.is_number_unsigned()) return LinkRates(json.get<std::uint64_t>());
  const bool fits = json.is_array() && !json.empty() && json.size() <= kMaxDimensions &&
                    std::all_of(json.begin(), json.end(),
                                [](const auto& rate) { return rate.is_number_unsigned(); });
  if (!fits)
    throw UsageError(fmt::format("{} the rate is no whole number or a list of such", where));
  return LinkRates(json.get<std::vector<std::uint64_t>>());
}

}  // namespace gradcube::control
