#include "cli/text/units_text.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

namespace gradcube::cli {
namespace {

std::string scaled(double value, const std::array<std::string_view, 5>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}g} {}", value, std::abs(value) >= 100 ? 4 : 3, units[unit]);
}

}  // namespace

std::string human_bytes(double bytes) { return scaled(bytes, {"B", "KB", "MB", "GB", "TB"}); }

std::string exact_bytes(std::uint64_t bytes) {
  const std::string text = human_bytes(static_cast<double>(bytes));
  std::uint64_t digits = bytes;
  while (digits != 0 && digits % 10 == 0) digits /= 10;
  return digits < 1000 ? text : fmt::format("{} ({} bytes)", text, grouped(bytes));
}

std::string human_rate(double bits_per_second) {
  return scaled(bits_per_second, {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"});
}

std::string human_seconds(double seconds) {
  // Hours say nothing then, and beyond 2^64 s there is no whole number of them.
  if (seconds >= 1e15) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 60) {
    const auto whole = static_cast<std::uint64_t>(seconds);
    if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  if (seconds >= 1 || seconds == 0) return fmt::format("{:.3g} s", seconds);
  return scaled(seconds * 1e9, {"ns", "us", "ms", "s", "s"});
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

}  // namespace gradcube::cli
