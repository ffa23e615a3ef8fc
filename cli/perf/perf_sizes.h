// Which sizes `gradcube perf` measures: a list, or a range as nccl-tests has it.
#ifndef GRADCUBE_CLI_PERF_PERF_SIZES_H_
#define GRADCUBE_CLI_PERF_PERF_SIZES_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace gradcube::cli {

// Bytes, as control/base/units.h reads them; 0 is a size. "1K,64K,12.5M". Throws UsageError for an
// empty list or item, and for an item that is not a size.
std::vector<std::uint64_t> parse_size_list(std::string_view text);

// -b, -e and -f of nccl-tests: from `least` to at most `most`, each size `factor` times the one
// before.
struct SizeRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t factor = 2;
};

// Throws UsageError when the range is empty or would never end.
std::vector<std::uint64_t> sizes_of(const SizeRange& range);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_SIZES_H_
