#include "control/model/crossover.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gradcube::control::model {
namespace {

// Equations that say the same in other words differ in the last digits.
bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }
bool same(const GstLine& a, const GstLine& b) {
  return same(a.latency_seconds, b.latency_seconds) && same(a.seconds_per_byte, b.seconds_per_byte);
}
bool is_flatter(const GstLine& line, const GstLine& than) {
  return line.seconds_per_byte < than.seconds_per_byte &&
         !same(line.seconds_per_byte, than.seconds_per_byte);
}

// Where the flatter line gets below the other.
double crossing(const GstLine& flatter, const GstLine& other) {
  return std::max(0.0, (flatter.latency_seconds - other.latency_seconds) /
                           (other.seconds_per_byte - flatter.seconds_per_byte));
}

// The one that wins for very few bytes.
const GstLine& first_winner(const std::vector<GstLine>& lines) {
  return *std::min_element(lines.begin(), lines.end(), [](const GstLine& a, const GstLine& b) {
    if (same(a.latency_seconds, b.latency_seconds)) return is_flatter(a, b);
    return a.latency_seconds < b.latency_seconds;
  });
}

// The one that gets below `winner` first, and of several that do so at once the flattest; null if
// none does.
const GstLine* next_winner(const std::vector<GstLine>& lines, const GstLine& winner) {
  const GstLine* next = nullptr;
  for (const GstLine& line : lines) {
    if (!is_flatter(line, winner)) continue;
    if (next == nullptr) {
      next = &line;
      continue;
    }
    const double here = crossing(line, winner);
    const double there = crossing(*next, winner);
    if (same(here, there) ? is_flatter(line, *next) : here < there) next = &line;
  }
  return next;
}

}  // namespace

std::vector<GstLine> gst_lines(const ModelTopology& topology, const ModelLoad& load) {
  constexpr double kBytes = 1e9;
  ModelLoad at_once = load;
  at_once.bytes = kBytes;
  at_once.latency_seconds = 0;
  ModelLoad one_byte = load;
  one_byte.bytes = 1;
  std::vector<GstLine> lines;
  for (const std::string_view name : gst_algorithms()) {
    const auto row = gst_row(topology, name, at_once);
    if (!row) continue;
    const double per_byte = row->seconds / kBytes;
    const double latency =
        load.latency_seconds > 0 ? gst_row(topology, name, one_byte)->seconds - per_byte : 0;
    lines.push_back({std::string(name), latency, per_byte});
  }
  return lines;
}

std::vector<Winners> crossovers(const std::vector<GstLine>& lines) {
  std::vector<Winners> all;
  const GstLine* winner = &first_winner(lines);
  double from_bytes = 0;
  while (winner != nullptr) {
    Winners& winners = all.emplace_back(Winners{.from_bytes = from_bytes, .lines = {}});
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(winners.lines),
                 [&](const GstLine& line) { return same(line, *winner); });
    const GstLine* const next = next_winner(lines, *winner);
    if (next != nullptr) from_bytes = crossing(*next, *winner);
    winner = next;
  }
  return all;
}

}  // namespace gradcube::control::model
