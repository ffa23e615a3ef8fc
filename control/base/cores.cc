#include "control/base/cores.h"

#include <cerrno>
#include <sched.h>
#include <system_error>

namespace gradcube::control {

std::vector<unsigned> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot read the cores of this process");
  }
  std::vector<unsigned> cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace gradcube::control
