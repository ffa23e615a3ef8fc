// How much memory this host can still give.
#ifndef GRADCUBE_CLI_CLUSTER_AVAILABLE_MEMORY_H_
#define GRADCUBE_CLI_CLUSTER_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gradcube::cli {

// Bytes: the tighter of the machine's and the control group's. Empty where neither can be read.
std::optional<std::uint64_t> available_memory();

// The number behind the word `key` in a file of the kernel's; its first word where the key is
// empty.
std::optional<std::uint64_t> number_after(const std::filesystem::path& file,
                                          const std::string& key);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_AVAILABLE_MEMORY_H_
