// The memory of this host. Any thread.
#ifndef GRADCUBE_CONTROL_BASE_HOST_MEMORY_H_
#define GRADCUBE_CONTROL_BASE_HOST_MEMORY_H_

#include <cstdint>

namespace gradcube::control {

// Half of this host's memory: what a user's trainers may use together unless the cluster says
// otherwise. UINT64_MAX where the kernel does not say.
std::uint64_t half_of_host_memory();

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_HOST_MEMORY_H_
