#include "dataplane/host/memory_placement.h"

#include <algorithm>
#include <memory>
#include <numa.h>
#include <numaif.h>

namespace gradcube::dataplane {

std::optional<unsigned> common_numa_node(const std::vector<int>& nodes) {
  if (nodes.empty() || nodes.front() < 0) return std::nullopt;
  const bool same =
      std::all_of(nodes.begin(), nodes.end(), [&](int node) { return node == nodes.front(); });
  return same ? std::optional(static_cast<unsigned>(nodes.front())) : std::nullopt;
}

bool prefer_numa_node(void* mapping, std::uint64_t bytes, std::optional<unsigned> node) {
  if (!node.has_value() || numa_available() < 0 || numa_max_node() == 0) return false;
  const std::unique_ptr<bitmask, decltype(&numa_free_nodemask)> mask(numa_allocate_nodemask(),
                                                                     &numa_free_nodemask);
  if (mask == nullptr || *node >= mask->size) return false;
  numa_bitmask_setbit(mask.get(), *node);
  return mbind(mapping, bytes, MPOL_PREFERRED, mask->maskp, mask->size + 1, 0) == 0;
}

}  // namespace gradcube::dataplane
