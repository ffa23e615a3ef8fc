#include "cli/size_list.h"

#include "control/base/errors.h"
#include "control/base/units.h"

namespace gradcube::cli {

std::vector<std::uint64_t> parse_size_list(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    if (item.empty()) {
      throw control::UsageError(
          "--sizes: a size is empty; accepted is a list of bytes such as 1K,64K,12.5M");
    }
    sizes.push_back(control::parse_size(item, "--sizes"));
    if (comma == std::string_view::npos) return sizes;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace gradcube::cli
