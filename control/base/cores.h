// The cores of this process.
#ifndef GRADCUBE_CONTROL_BASE_CORES_H_
#define GRADCUBE_CONTROL_BASE_CORES_H_

#include <vector>

namespace gradcube::control {

// The cores that this process may run on, ascending. Throws std::system_error when the kernel does
// not say. Any thread.
std::vector<unsigned> allowed_cores();

// Whether /sys describes the core: DPDK takes no other.
bool is_described(unsigned core);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_CORES_H_
