#include "control/base/cores.h"

#include <cerrno>
#include <sched.h>
#include <string>
#include <system_error>
#include <unistd.h>

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

bool is_described(unsigned core) {
  const std::string path =
      "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/core_id";
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace gradcube::control
