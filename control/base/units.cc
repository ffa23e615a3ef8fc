#include "control/base/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <span>

#include "control/base/errors.h"

namespace gradcube::control {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kRates[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}};
constexpr Unit kSizes[] = {{"", 1},    {"b", 1},    {"k", 1e3}, {"kb", 1e3},
                           {"m", 1e6}, {"mb", 1e6}, {"g", 1e9}, {"gb", 1e9}};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

constexpr double kMaxRate = 1e13;
constexpr double kMaxSize = 1e15;
constexpr double kMaxDuration = 3600e9;

constexpr std::string_view kRateAccepted =
    "a number and its unit bit, kbit, mbit, gbit or tbit (bits per second), for example 200mbit";
constexpr std::string_view kSizeAccepted =
    "a whole number of bytes, or a number and K, M or G (decimal), for example 12.5M";
constexpr std::string_view kDurationAccepted =
    "a number and its unit ns, us, ms or s, for example 50us";

[[noreturn]] void refuse(std::string_view where, std::string_view text, std::string_view what,
                         std::string_view accepted) {
  throw UsageError(fmt::format("{} \"{}\": {}; accepted is {}", where, text, what, accepted));
}

bool is_plain_number(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::count(text.begin(), text.end(), '.') <= 1 &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

struct Quantity {
  double value;
  std::string unit;  // in lower case
};

// Splits "12.5M" into 12.5 and "m".
Quantity split(std::string_view text, std::string_view where, std::string_view accepted) {
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, end);
  Quantity quantity{0, std::string(text.substr(end))};
  if (!is_plain_number(number)) refuse(where, text, "this does not begin with a number", accepted);
  std::from_chars(number.data(), number.data() + number.size(), quantity.value);
  for (char& c : quantity.unit) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return quantity;
}

double scaled(const Quantity& quantity, std::span<const Unit> units, std::string_view text,
              std::string_view where, std::string_view accepted) {
  for (const Unit& unit : units) {
    if (unit.name == quantity.unit) return quantity.value * unit.factor;
  }
  refuse(where, text,
         quantity.unit.empty() ? "the unit is missing"
                               : fmt::format("\"{}\" is no unit here", quantity.unit),
         accepted);
}

std::string format_quantity(double value, std::span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (value >= unit.factor) best = &unit;
  }
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

uint64_t parse_rate(std::string_view text, std::string_view where) {
  const Quantity quantity = split(text, where, kRateAccepted);
  const double rate = std::round(scaled(quantity, kRates, text, where, kRateAccepted));
  if (rate < 1000 || rate > kMaxRate) {
    refuse(where, text, "a rate is at least 1kbit and at most 10tbit", kRateAccepted);
  }
  return static_cast<uint64_t>(rate);
}

uint64_t parse_size(std::string_view text, std::string_view where) {
  const Quantity quantity = split(text, where, kSizeAccepted);
  const double size = scaled(quantity, kSizes, text, where, kSizeAccepted);
  const double whole = std::round(size);
  if (std::abs(size - whole) > 1e-6 * std::max(1.0, size / 1e6)) {
    refuse(where, text, "this is not a whole number of bytes", kSizeAccepted);
  }
  if (whole > kMaxSize) refuse(where, text, "this is more than 1000000G", kSizeAccepted);
  return static_cast<uint64_t>(whole);
}

int64_t parse_duration(std::string_view text, std::string_view where) {
  const Quantity quantity = split(text, where, kDurationAccepted);
  if (quantity.unit.empty() && quantity.value == 0) return 0;
  const double duration = std::round(scaled(quantity, kDurations, text, where, kDurationAccepted));
  if (duration > kMaxDuration) refuse(where, text, "this is more than an hour", kDurationAccepted);
  return static_cast<int64_t>(duration);
}

double parse_probability(std::string_view text, std::string_view where) {
  constexpr std::string_view kAccepted = "a number in 0..1, for example 0.01";
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !(value >= 0 && value <= 1)) {
    refuse(where, text, "this is not a probability", kAccepted);
  }
  return value;
}

uint64_t parse_integer(std::string_view text, std::string_view where, uint64_t lowest,
                       uint64_t highest) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < lowest || value > highest) {
    throw UsageError(fmt::format("{} \"{}\": accepted is a whole number in {}..{}", where, text,
                                 lowest, highest));
  }
  return value;
}

std::string format_rate(uint64_t bits_per_second) {
  return format_quantity(static_cast<double>(bits_per_second), kRates);
}

std::string format_size(uint64_t bytes) {
  constexpr Unit kShown[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}};
  return format_quantity(static_cast<double>(bytes), kShown);
}

std::string format_duration(int64_t nanoseconds) {
  return format_quantity(static_cast<double>(nanoseconds), kDurations);
}

}  // namespace gradcube::control
