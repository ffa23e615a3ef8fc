// DPDK, started once for the binary, on ordinary memory and on the first CPU there is.

#include <gtest/gtest.h>
#include <memory>

#include "dataplane/host/eal.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gradcube::dataplane::EalOptions options;
  options.cores = {gradcube::dataplane::usable_cores().front()};
  options.memory_megabytes = 1536;
  options.huge_pages = gradcube::dataplane::HugePages::kNever;
  const gradcube::dataplane::Eal eal(options);
  return RUN_ALL_TESTS();
}
