#include "control/base/units.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <span>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr Unit kRates[] = {{"bit", 1},
                           {"kbit", 1'000},
                           {"mbit", 1'000'000},
                           {"gbit", 1'000'000'000},
                           {"tbit", 1'000'000'000'000}};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
constexpr Unit kSizes[] = {{"", 1},
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
constexpr std::uint64_t kMaxDuration = 3'600'000'000'000;

constexpr std::string_view kSizeAccepted =
    "a whole number of bytes, or a number and K, M, G (decimal) or Ki, Mi, Gi (binary), for "
    "example 12.5M";
constexpr std::string_view kDurationAccepted =
    "a number and its unit ns, us, ms or s, for example 50us";

[[noreturn]] void refuse(std::string_view where, std::string_view text, std::string_view what,
                         std::string_view accepted) {
  throw UsageError(fmt::format("{} {}: {}; expected {}", where, quoted(text), what, accepted));
}

// A number of units, exactly.
struct Quantity {
  unsigned __int128 numerator = 0;
  unsigned __int128 divisor = 1;

  unsigned __int128 rounded() const { return (numerator + divisor / 2) / divisor; }
};

// Without a point and zeros at an end, the digits fit into 64 bits; nothing where they do not.
std::optional<Quantity> exact(std::string_view number) {
  constexpr unsigned kMostDigits = 18;
  if (number.find('.') != std::string_view::npos) {
    number = number.substr(0, number.find_last_not_of('0') + 1);  // 12.500 is 12.5
  }
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  if (number.size() > kMostDigits + 1) return std::nullopt;
  Quantity quantity;
  bool behind_point = false;
  for (const char c : number) {
    if (c == '.') {
      behind_point = true;
      continue;
    }
    quantity.numerator = quantity.numerator * 10 + static_cast<unsigned>(c - '0');
    if (behind_point) quantity.divisor *= 10;
  }
  return quantity;
}

// "12.5M": 12.5 times what the unit stands for.
Quantity read(std::string_view text, std::string_view where, std::span<const Unit> units,
              std::string_view accepted) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, end);
  if (number.empty() || number.front() == '.' || number.back() == '.' ||
      std::count(number.begin(), number.end(), '.') > 1) {
    refuse(where, text, "this does not begin with a number", accepted);
  }
  std::string name(text.substr(end));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&name](const Unit& known) { return known.name == name; });
  if (unit == units.end()) {
    refuse(where, text,
           name.empty() ? "the unit is missing"
                        : fmt::format("there is no unit {}", quoted(text.substr(end))),
           accepted);
  }
  std::optional<Quantity> quantity = exact(number);
  if (!quantity) refuse(where, text, "this number has too many digits", accepted);
  quantity->numerator *= unit->factor;
  return *quantity;
}

std::string format_quantity(double value, std::span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (value >= static_cast<double>(unit.factor)) best = &unit;
  }
  return fmt::format("{}{}", value / static_cast<double>(best->factor), best->name);
}

}  // namespace

std::uint64_t parse_rate(std::string_view text, std::string_view where) {
  static const std::string kRateAccepted = fmt::format(
      "a number and its unit bit, kbit, mbit, gbit or tbit (bits per second), {} to {}, for "
      "example 200mbit",
      format_rate(kLeastRate), format_rate(kMostRate));
  const unsigned __int128 rate = read(text, where, kRates, kRateAccepted).rounded();
  if (rate < kLeastRate || rate > kMostRate) {
    refuse(where, text, "this rate is out of range", kRateAccepted);
  }
  return static_cast<std::uint64_t>(rate);
}

std::uint64_t parse_size(std::string_view text, std::string_view where) {
  const Quantity size = read(text, where, kSizes, kSizeAccepted);
  if (size.numerator % size.divisor != 0) {
    refuse(where, text, "this is not a whole number of bytes", kSizeAccepted);
  }
  if (size.rounded() > kMaxSize) refuse(where, text, "this is more than 1000000G", kSizeAccepted);
  return static_cast<std::uint64_t>(size.rounded());
}

std::int64_t parse_duration(std::string_view text, std::string_view where) {
  const bool is_zero = text.starts_with('0') && text.ends_with('0') &&
                       text.find_first_not_of("0.") == std::string_view::npos &&
                       std::count(text.begin(), text.end(), '.') <= 1;
  if (is_zero) return 0;  // whatever the unit
  const unsigned __int128 duration = read(text, where, kDurations, kDurationAccepted).rounded();
  if (duration > kMaxDuration) {
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
  constexpr Unit kShown[] = {{"", 1}, {"K", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
  return format_quantity(static_cast<double>(bytes), kShown);
}

std::string format_duration(std::int64_t nanoseconds) {
  return format_quantity(static_cast<double>(nanoseconds), kDurations);
}

std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace gradcube::control
