#include "control/base/host_memory.h"

#include <unistd.h>

namespace gradcube::control {

std::uint64_t half_of_host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(pages) / 2 * static_cast<std::uint64_t>(page);
}

}  // namespace gradcube::control
