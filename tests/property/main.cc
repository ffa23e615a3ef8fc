// A run says its seed and, of a failure, what replays it: RC_PARAMS="reproduce=...". It draws other
// cases each time. $RC_PARAMS may set more, "max_success=1000" or "seed=7".

#include <cstdlib>
#include <gtest/gtest.h>
#ifdef GRADCUBE_PROPERTIES_NEED_DPDK
#include "tests/simulation/eal_options.h"
#endif

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("RC_PARAMS", "max_success=300", 0);
#ifdef GRADCUBE_PROPERTIES_NEED_DPDK
  const gradcube::dataplane::Eal eal(gradcube::simulation::eal_options());
#endif
  return RUN_ALL_TESTS();
}
