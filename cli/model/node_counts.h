// Numbers of nodes as people write them: "64", "4,8,64", and "4..64", which is 4, 8, 16, 32 and 64.
#ifndef GRADCUBE_CLI_MODEL_NODE_COUNTS_H_
#define GRADCUBE_CLI_MODEL_NODE_COUNTS_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace gradcube::cli {

// Each 2 or more. A range has its first number and goes on with twice the one before, up to its
// last. Throws a UsageError that begins with `where` for another text.
std::vector<std::uint64_t> parse_node_counts(std::string_view text, std::string_view where);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_NODE_COUNTS_H_
