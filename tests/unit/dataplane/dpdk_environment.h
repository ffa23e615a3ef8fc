// DPDK for the binaries whose tests need it, and the seed of their random tests.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_DPDK_ENVIRONMENT_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_DPDK_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>

#include "dataplane/host/eal.h"

namespace gradcube::dataplane {

// DPDK, started once for a test binary, on ordinary memory and on the first CPU there is.
class DpdkEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    EalOptions options;
    options.cores = {usable_cores().front()};
    options.memory_megabytes = 128;
    options.huge_pages = HugePages::never;
    eal_ = std::make_unique<Eal>(options);
  }
  void TearDown() override { eal_.reset(); }
  const Eal& eal() const { return *eal_; }

 private:
  std::unique_ptr<Eal> eal_;
};

// The seed of a randomised test: GRADCUBE_TEST_SEED replays one.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("GRADCUBE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : 20180212;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_DPDK_ENVIRONMENT_H_
