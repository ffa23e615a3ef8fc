#include "dataplane/host/memory_placement.h"

#include <gtest/gtest.h>
#include <numa.h>
#include <sys/mman.h>

namespace gradcube::dataplane {
namespace {

TEST(MemoryPlacement, NamesANodeOnlyIfAllAreOnIt) {
  EXPECT_EQ(common_numa_node({1, 1, 1}), 1u);
  EXPECT_EQ(common_numa_node({0}), 0u);
  EXPECT_EQ(common_numa_node({0, 1}), std::nullopt);
  EXPECT_EQ(common_numa_node({-1, -1}), std::nullopt);
  EXPECT_EQ(common_numa_node({0, -1}), std::nullopt);
  EXPECT_EQ(common_numa_node({}), std::nullopt);
}

TEST(MemoryPlacement, AsksTheKernelOnlyOnAHostWithSeveralNodes) {
  void* mapping = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  const bool several = numa_available() >= 0 && numa_max_node() > 0;
  EXPECT_EQ(prefer_numa_node(mapping, 1 << 20, 0), several);
  EXPECT_FALSE(prefer_numa_node(mapping, 1 << 20, std::nullopt));
  EXPECT_FALSE(prefer_numa_node(mapping, 1 << 20, 1'000'000));
  munmap(mapping, 1 << 20);
}

}  // namespace
}  // namespace gradcube::dataplane
