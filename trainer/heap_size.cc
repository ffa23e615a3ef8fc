#include "trainer/heap_size.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace gradcube::shared {
namespace {

// Of a unit in any case, empty when there is no such unit.
std::optional<double> factor_of(std::string_view unit) {
  struct Unit {
    std::string_view name;
    double factor;
  };
  constexpr Unit kUnits[] = {{"", 1},          {"k", 1e3},       {"m", 1e6},      {"g", 1e9},
                             {"ki", 1u << 10}, {"mi", 1u << 20}, {"gi", 1u << 30}};
  std::string lower(unit);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower.ends_with('b')) lower.pop_back();
  for (const Unit& known : kUnits) {
    if (known.name == lower) return known.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_heap_bytes(std::string_view text) {
  constexpr auto kMost = static_cast<double>(kMostHeapBytes);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const char* end = text.data() + digits;
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::optional<double> factor = factor_of(text.substr(digits));
  if (error != std::errc() || rest != end || !factor.has_value()) return std::nullopt;
  const double bytes = number * *factor;
  const double whole = std::round(bytes);  // 4.35 times 1000 is not 4350 in binary fractions
  if (!(whole >= 1 && whole <= kMost) || std::abs(bytes - whole) > 1e-3) return std::nullopt;
  return static_cast<std::uint64_t>(whole);
}

}  // namespace gradcube::shared
