// "1K,64K,12.5M": the sizes of `gradcube perf --sizes`.
#ifndef GRADCUBE_CLI_SIZE_LIST_H_
#define GRADCUBE_CLI_SIZE_LIST_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace gradcube::cli {

// Bytes; K, M and G are decimal, 0 is a size. Throws UsageError for an empty list or item, and for
// what is no size.
std::vector<std::uint64_t> parse_size_list(std::string_view text);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_SIZE_LIST_H_
