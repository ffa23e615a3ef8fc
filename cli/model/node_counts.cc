#include "cli/model/node_counts.h"

#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/model/grid.h"

namespace gradcube::cli {
namespace {

constexpr std::string_view kRange = "..";

std::uint64_t count_of(std::string_view text, std::string_view where) {
  return control::parse_integer(text, where, 2, control::model::kMostServers);
}

}  // namespace

std::vector<std::uint64_t> parse_node_counts(std::string_view text, std::string_view where) {
  std::vector<std::uint64_t> counts;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t range = item.find(kRange);
    const std::uint64_t first = count_of(item.substr(0, range), where);
    const std::uint64_t last = range == std::string_view::npos
                                   ? first
                                   : count_of(item.substr(range + kRange.size()), where);
    if (first > last) {
      throw control::UsageError(
          fmt::format("{} {}: the range ends before it begins; expected {}..{}", where,
                      control::quoted(item), last, first));
    }
    for (std::uint64_t count = first; count <= last; count *= 2) counts.push_back(count);
    if (comma == std::string_view::npos) return counts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace gradcube::cli
