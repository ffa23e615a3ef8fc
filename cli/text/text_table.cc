#include "cli/text/text_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

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

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  std::string text;
  const auto append = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string& cell = cell_of(i);
      line += columns_[i].align == Align::right ? fmt::format("{:>{}}", cell, widths[i])
                                                : fmt::format("{:<{}}", cell, widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) {
    append([&](std::size_t i) -> const std::string& { return row[i]; });
  }
  return text;
}

std::string human_bytes(double bytes) { return scaled(bytes, {"B", "KB", "MB", "GB", "TB"}); }

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
