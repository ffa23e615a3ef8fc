#include "cli/host_cores.h"

#include <sched.h>

namespace gradcube::cli {

std::vector<unsigned> available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace gradcube::cli
