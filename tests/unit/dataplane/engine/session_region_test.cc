// The memory that a trainer shares with the daemon: neither side takes a page from under the other.

#include "dataplane/engine/memory/session_region.h"

#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {
namespace {

TEST(SessionRegion, CannotBeShrunkOrGrownByWhoHoldsIt) {
  const SessionRegion region(100);
  EXPECT_EQ(region.bytes() % 4096, 0u);
  EXPECT_NE(ftruncate(region.descriptor(), 4096), 0);
  EXPECT_NE(ftruncate(region.descriptor(), static_cast<off_t>(region.bytes() + 4096)), 0);
}

TEST(SessionRegion, LosesNoPageOnceItsTrainerHasSealedIt) {
  const SessionRegion region(1 << 20);
  constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  EXPECT_FALSE(region.is_sealed());
  EXPECT_EQ(fallocate(region.descriptor(), kPunch, shared::kHeapOffset, 4096), 0);
  ASSERT_EQ(fcntl(region.descriptor(), F_ADD_SEALS, shared::kSeals), 0);
  EXPECT_TRUE(region.is_sealed());
  EXPECT_NE(fallocate(region.descriptor(), kPunch, shared::kHeapOffset, 4096), 0);
  std::uint8_t* const heap = region.base() + shared::kHeapOffset;
  EXPECT_NE(madvise(heap, 4096, MADV_REMOVE), 0);
  EXPECT_NE(fcntl(region.descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor sealed further";
  heap[0] = 1;  // the daemon's own mapping goes on
  EXPECT_EQ(heap[0], 1);
}

TEST(SessionRegion, KnowsWhichPagesAreThereWithoutMakingAny) {
  const SessionRegion region(std::uint64_t{1} << 30);
  void* trainers = mmap(nullptr, region.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        region.descriptor(), 0);
  ASSERT_NE(trainers, MAP_FAILED);
  const std::uint64_t begin = shared::kHeapOffset;
  const std::uint64_t before = region.resident_bytes();
  EXPECT_FALSE(region.has_pages(begin, begin + (64 << 20)));
  EXPECT_EQ(region.resident_bytes(), before);
  for (std::uint64_t at = begin; at < begin + (1 << 20); at += 4096) {
    static_cast<volatile std::uint8_t*>(trainers)[at] = 1;
  }
  EXPECT_TRUE(region.has_pages(begin, begin + (1 << 20)));
  EXPECT_FALSE(region.has_pages(begin, begin + (1 << 20) + 4096));
  EXPECT_TRUE(region.has_pages(begin, begin));
  munmap(trainers, region.bytes());
}

TEST(SessionRegion, TakesMemoryOnlyForWhatIsTouched) {
  const SessionRegion region(std::uint64_t{1} << 32);
  EXPECT_LT(region.resident_bytes(), 100'000u);
  region.base()[shared::kHeapOffset + (1 << 20)] = 1;
  EXPECT_GE(region.resident_bytes(), 8192u - 4096u);
}

TEST(SessionRegion, SaysWhyWhenItCannotBeMade) {
  EXPECT_THROW(SessionRegion(std::uint64_t{1} << 62), control::SetupError);
}

}  // namespace
}  // namespace gradcube::dataplane
