// DPDK, started once for the binary.

#include <gtest/gtest.h>

#include "tests/simulation/eal_options.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const gradcube::dataplane::Eal eal(gradcube::simulation::eal_options());
  return RUN_ALL_TESTS();
}
