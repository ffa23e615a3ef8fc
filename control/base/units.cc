#include "control/base/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <span>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kRates[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

struct SizeUnit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr SizeUnit kSizes[] = {{"", 1},
                               {"b", 1},
                               {"k", 1'000},
                               {"kb", 1'000},
                               {"m", 1'000'000},
                               {"mb", 1'000'000},
                               {"g", 1'000'000'000},
                               {"gb", 1'000'000'000},
                               {"ki", 1ull << 10},
                               {"kib", 1ull << 10},
                               {"mi", 1ull << 20},
                               {"mib", 1ull << 20},
                               {"gi", 1ull << 30},
                               {"gib", 1ull << 30}};

constexpr std::uint64_t kMaxSize = 1'000'000'000'000'000;
constexpr double kMaxDuration = 3600e9;

constexpr std::string_view kSizeAccepted =
    "a whole number of bytes, or a number and K, M, G (decimal) or Ki, Mi, Gi (binary), for "
    "example 12.5M";
constexpr std::string_view kDurationAccepted =
    "a number and its unit ns, us, ms or s, for example 50us";

[[noreturn]] void refuse(std::string_view where, std::string_view text, std::string_view what,
                         std::string_view accepted) {
  throw UsageError(fmt::format("{} {}: {}; expected {}", where, quoted(text), what, accepted));
}

bool is_plain_number(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::count(text.begin(), text.end(), '.') <= 1 &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

struct Quantity {
  std::string_view number;  // digits, with at most one point between them
  std::string unit;         // in lower case

  double value() const {
    double value = 0;
    const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
    return result.ec == std::errc() ? value : std::numeric_limits<double>::infinity();
  }
};

// Splits "12.5M" into 12.5 and "m".
Quantity split(std::string_view text, std::string_view where, std::string_view accepted) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  Quantity quantity{text.substr(0, end), std::string(text.substr(end))};
  if (!is_plain_number(quantity.number)) {
    refuse(where, text, "this does not begin with a number", accepted);
  }
  for (char& c : quantity.unit) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return quantity;
}

template <typename Units>
auto factor_of(const Quantity& quantity, const Units& units, std::string_view text,
               std::string_view where, std::string_view accepted) {
  for (const auto& unit : units) {
    if (unit.name == quantity.unit) return unit.factor;
  }
  refuse(where, text,
         quantity.unit.empty()
             ? "the unit is missing"
             : fmt::format("there is no unit {}", quoted(text.substr(quantity.number.size()))),
         accepted);
}

// A number of digits with a point, as digits / 10^decimals. Empty when it has more digits than can
// be a size.
struct Decimal {
  std::uint64_t digits = 0;
  unsigned decimals = 0;
};
std::optional<Decimal> exact(std::string_view number) {
  constexpr unsigned kMostDigits = 18;  // fit into 64 bits
  const std::size_t point = number.find('.');
  if (point != std::string_view::npos) {
    number = number.substr(0, number.find_last_not_of('0') + 1);  // 12.500 is 12.5
  }
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  if (number.size() > kMostDigits + 1) return std::nullopt;
  Decimal decimal;
  bool behind_point = false;
  for (const char c : number) {
    if (c == '.') {
      behind_point = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(c - '0');
    if (behind_point) ++decimal.decimals;
  }
  return decimal;
}

std::string format_quantity(double value, std::span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (value >= unit.factor) best = &unit;
  }
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

std::uint64_t parse_rate(std::string_view text, std::string_view where) {
  static const std::string kRateAccepted = fmt::format(
      "a number and its unit bit, kbit, mbit, gbit or tbit (bits per second), {} to {}, for "
      "example 200mbit",
      format_rate(kLeastRate), format_rate(kMostRate));
  const Quantity quantity = split(text, where, kRateAccepted);
  const double factor = factor_of(quantity, kRates, text, where, kRateAccepted);
  const double rate = std::round(quantity.value() * factor);
  if (!(rate >= static_cast<double>(kLeastRate) && rate <= static_cast<double>(kMostRate))) {
    refuse(where, text, "this rate is out of range", kRateAccepted);
  }
  return static_cast<std::uint64_t>(rate);
}

std::uint64_t parse_size(std::string_view text, std::string_view where) {
  const Quantity quantity = split(text, where, kSizeAccepted);
  const std::uint64_t factor = factor_of(quantity, kSizes, text, where, kSizeAccepted);
  const std::optional<Decimal> number = exact(quantity.number);
  if (!number) refuse(where, text, "this number has too many digits", kSizeAccepted);
  using Wide = unsigned __int128;
  const Wide scaled = Wide{number->digits} * factor;
  Wide divisor = 1;
  for (unsigned i = 0; i < number->decimals; ++i) divisor *= 10;
  if (scaled % divisor != 0) {
    refuse(where, text, "this is not a whole number of bytes", kSizeAccepted);
  }
  if (scaled / divisor > kMaxSize) refuse(where, text, "this is more than 1000000G", kSizeAccepted);
  return static_cast<std::uint64_t>(scaled / divisor);
}

std::int64_t parse_duration(std::string_view text, std::string_view where) {
  const Quantity quantity = split(text, where, kDurationAccepted);
  if (quantity.unit.empty() && quantity.value() == 0) return 0;
  const double factor = factor_of(quantity, kDurations, text, where, kDurationAccepted);
  const double duration = std::round(quantity.value() * factor);
  if (!(duration <= kMaxDuration)) {
    refuse(where, text, "this is more than an hour", kDurationAccepted);
  }
  return static_cast<std::int64_t>(duration);
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

std::uint64_t parse_integer(std::string_view text, std::string_view where, std::uint64_t lowest,
                            std::uint64_t highest) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < lowest || value > highest) {
    throw UsageError(fmt::format("{} {}: expected a whole number in {}..{}", where, quoted(text),
                                 lowest, highest));
  }
  return value;
}

std::string format_rate(std::uint64_t bits_per_second) {
  return format_quantity(static_cast<double>(bits_per_second), kRates);
}

std::string format_size(std::uint64_t bytes) {
  constexpr Unit kShown[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}};
  return format_quantity(static_cast<double>(bytes), kShown);
}

std::string format_duration(std::int64_t nanoseconds) {
  return format_quantity(static_cast<double>(nanoseconds), kDurations);
}

std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace gradcube::control
