#include <gtest/gtest.h>

#include "tests/unit/dataplane/dpdk_environment.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new gradcube::dataplane::DpdkEnvironment);
  return RUN_ALL_TESTS();
}
