// Where memory lies on a host with several NUMA nodes. On a host with one node nothing happens.
//
// Threads: any.
#ifndef GRADCUBE_DATAPLANE_HOST_MEMORY_PLACEMENT_H_
#define GRADCUBE_DATAPLANE_HOST_MEMORY_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace gradcube::dataplane {

// The node that all of them name; nothing if they differ, or if one of them (-1) is unknown.
std::optional<unsigned> common_numa_node(const std::vector<int>& nodes);

// Asks the kernel to take the mapping's pages from this node as long as it has some. Before the
// first touch. For a shared mapping the wish belongs to the file, so it holds for every process
// that maps it. False if there is nothing to ask for, or the kernel refuses: then pages come from
// where they are touched, which is slower at worst.
bool prefer_numa_node(void* mapping, std::uint64_t bytes, std::optional<unsigned> node);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_MEMORY_PLACEMENT_H_
