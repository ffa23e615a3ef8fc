#include "control/settings/link_rates.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::control {
namespace {

constexpr std::string_view kLevel = "level";
constexpr std::string_view kForm =
    "one rate for all links, or one for each level: level0=10gbit,level1=1gbit";

[[noreturn]] void refuse(std::string_view where, std::string_view text, std::string_view what) {
  throw UsageError(fmt::format("{} {}: {}; expected {}", where, quoted(text), what, kForm));
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

std::uint64_t LinkRates::slowest() const {
  return rates_.empty() ? 0 : *std::min_element(rates_.begin(), rates_.end());
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
  return LinkRates(std::move(by_level));
}

Topology LinkRates::on(const Topology& topology) const {
  std::vector<std::uint64_t> by_level;
  for (unsigned level = 0; level < topology.link_levels(); ++level) by_level.push_back(of(level));
  return topology.with_rates(by_level);
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
}

LinkRates parse_link_rates(std::string_view text, std::string_view where) {
  if (text.find('=') == std::string_view::npos) return LinkRates(parse_rate(text, where));
  std::vector<std::uint64_t> rates;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::string_view item = rest.substr(0, rest.find(','));
    more = item.size() < rest.size();
    rest.remove_prefix(item.size() + (more ? 1 : 0));
    parse_item(item, text, where, rates);
  }
  return LinkRates(std::move(rates));
}

std::string rates_text(const LinkRates& rates) {
  if (!rates.by_level_) return rates.limited() ? format_rate(rates.rates_.front()) : "";
  std::string text;
  for (std::size_t level = 0; level < rates.rates_.size(); ++level) {
    if (rates.rates_[level] == 0) continue;
    text += fmt::format("{}{}{}={}", text.empty() ? "" : ",", kLevel, level,
                        format_rate(rates.rates_[level]));
  }
  return text;
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
