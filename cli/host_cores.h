// The cores that this process may run on.
#ifndef GRADCUBE_CLI_HOST_CORES_H_
#define GRADCUBE_CLI_HOST_CORES_H_

#include <vector>

namespace gradcube::cli {

// Ascending; empty when the system does not tell.
std::vector<unsigned> available_cores();

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_HOST_CORES_H_
