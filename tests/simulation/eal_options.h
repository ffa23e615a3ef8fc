// How DPDK is started for simulations: on ordinary memory and on the first CPU there is.
#ifndef GRADCUBE_TESTS_SIMULATION_EAL_OPTIONS_H_
#define GRADCUBE_TESTS_SIMULATION_EAL_OPTIONS_H_

#include "dataplane/host/eal.h"

namespace gradcube::simulation {

inline dataplane::EalOptions eal_options() {
  dataplane::EalOptions options;
  options.cores = {dataplane::usable_cores().front()};
  options.memory_megabytes = 1536;
  options.huge_pages = dataplane::HugePages::never;
  return options;
}

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_EAL_OPTIONS_H_
