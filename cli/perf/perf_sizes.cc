#include "cli/perf/perf_sizes.h"

#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/units.h"

namespace gradcube::cli {

using control::UsageError;

std::vector<std::uint64_t> parse_size_list(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  for (const std::string_view item : control::split(text, ',')) {
    if (item.empty()) {
      throw UsageError("--sizes: a size is empty; expected a list of bytes such as 1K,64K,12.5M");
    }
    sizes.push_back(control::parse_size(item, "--sizes"));
  }
  return sizes;
}

std::vector<std::uint64_t> sizes_of(const SizeRange& range) {
  if (range.least > range.most) {
    throw UsageError(fmt::format("--min-bytes is {}, which is more than --max-bytes, {}",
                                 control::format_size(range.least),
                                 control::format_size(range.most)));
  }
  if (range.least == 0 && range.most > 0) {
    throw UsageError(
        "--min-bytes is 0, and no factor leads from 0 to another size: give at least 1");
  }
  if (range.factor < 2) throw UsageError("--factor: expected a whole number from 2 on");
  std::vector<std::uint64_t> sizes = {range.least};
  while (sizes.back() > 0 && sizes.back() <= range.most / range.factor) {
    sizes.push_back(sizes.back() * range.factor);
  }
  return sizes;
}

}  // namespace gradcube::cli
