#include "trainer/src/session/heap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

#include "tests/support/scarce_memory.h"
#include "tests/unit/trainer/mebibyte.h"
#include "trainer/src/base/descriptor.h"
#include "trainer/src/base/pages.h"

namespace gradcube::trainer {
namespace {

// A shared file mapping, as the session's heap is one.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : file_(::memfd_create("heap-test", MFD_CLOEXEC)), bytes_(bytes) {
    EXPECT_EQ(::ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
    base_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    EXPECT_NE(base_, MAP_FAILED);
  }
  ~SharedMemory() { ::munmap(base_, bytes_); }

  std::span<std::byte> span() const { return {static_cast<std::byte*>(base_), bytes_}; }

  std::size_t bytes_with_pages() const {
    struct stat status {};
    EXPECT_EQ(::fstat(file_.get(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

 private:
  Descriptor file_;
  std::size_t bytes_;
  void* base_ = nullptr;
};

std::uint64_t test_seed() {
  if (const char* given = std::getenv("GRADCUBE_TEST_SEED"))
    return std::strtoull(given, nullptr, 0);
  return std::random_device{}();
}

TEST(Pages, GetMemoryAndKeepWhatTheyContain) {
  for (const bool by_hand : {false, true}) {
    SharedMemory memory(kMiB);
    const std::span<std::byte> half = memory.span().first(kMiB / 2);
    half[5000] = std::byte{7};
    if (by_hand) {
      touch_each_page(half);
    } else {
      EXPECT_EQ(touch(half), 0);
    }
    EXPECT_EQ(memory.bytes_with_pages(), kMiB / 2);
    EXPECT_EQ(half[5000], std::byte{7});
    EXPECT_EQ(half[4096], std::byte{0});
  }
}

TEST(Pages, ThatCannotBeHadAreAnError) {
  SharedMemory memory(kMiB);
  ::munmap(memory.span().data() + kMiB / 2, kMiB / 2);
  EXPECT_NE(touch(memory.span()), 0);
}

TEST(Heap, EveryBlockIsAligned) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), memory.span().size());
  for (std::size_t bytes : {0, 1, 63, 64, 65, 1000, 4096, 100000}) {
    void* block = heap.allocate(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
  }
}

TEST(Heap, GivesNullWhenItIsFullAndServesAgainAfterARelease) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), memory.span().size());
  void* all = heap.allocate(kMiB);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(heap.allocate(1), nullptr);
  EXPECT_EQ(heap.largest_free(), 0U);
  EXPECT_TRUE(heap.release(all));
  EXPECT_EQ(heap.allocate(kMiB), all);
}

TEST(Heap, GivesNullToSizesThatOverflowWhenRoundedUp) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), memory.span().size());
  EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX - 62), nullptr);
  EXPECT_EQ(heap.allocate(kMiB + 1), nullptr);
  EXPECT_EQ(heap.used(), 0U);
}

TEST(Heap, MergesWithBothNeighboursInEveryOrderOfRelease) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    SharedMemory memory(kMiB);
    Heap heap(memory.span(), memory.span().size());
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(heap.allocate(kMiB / 4));
    for (int i : order) ASSERT_TRUE(heap.release(blocks[static_cast<std::size_t>(i)]));
    EXPECT_EQ(heap.largest_free(), kMiB);
    EXPECT_EQ(heap.used(), 0U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Heap, TakesTheSmallestRangeThatFits) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), memory.span().size());
  void* large = heap.allocate(8192);
  ASSERT_NE(heap.allocate(64), nullptr);
  void* small = heap.allocate(1024);
  ASSERT_NE(heap.allocate(64), nullptr);
  heap.release(large);
  heap.release(small);
  EXPECT_EQ(heap.allocate(1000), small);
}

TEST(Heap, RefusesToReleaseWhatItDidNotAllocate) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), memory.span().size());
  auto* block = static_cast<std::byte*>(heap.allocate(256));
  int elsewhere = 0;
  EXPECT_FALSE(heap.release(&elsewhere));
  EXPECT_FALSE(heap.release(nullptr));
  EXPECT_FALSE(heap.release(block + 64));
  EXPECT_FALSE(heap.release(memory.span().data() + memory.span().size()));
  EXPECT_TRUE(heap.release(block));
  EXPECT_FALSE(heap.release(block));
}

TEST(Heap, KnowsTheBlockOfAnInnerAddress) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), memory.span().size());
  auto* first = static_cast<std::byte*>(heap.allocate(128));
  auto* second = static_cast<std::byte*>(heap.allocate(256));
  EXPECT_EQ(heap.block_of(first + 127).data(), first);
  EXPECT_EQ(heap.block_of(second + 100).data(), second);
  EXPECT_EQ(heap.block_of(second + 100).size(), 256U);
  EXPECT_TRUE(heap.block_of(second + 256).empty());
  heap.release(first);
  EXPECT_TRUE(heap.block_of(first).empty());
}

TEST(Heap, HandsOutOnlyWhatIsUsable) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), 0);
  EXPECT_EQ(heap.allocate(1), nullptr);
  EXPECT_EQ(heap.missing(1), 64U);
  EXPECT_EQ(heap.largest_free(), kMiB);
  heap.extend(4096);
  EXPECT_NE(heap.allocate(4096), nullptr);
  EXPECT_EQ(heap.allocate(64), nullptr);
  EXPECT_EQ(heap.usable(), 4096U);
}

TEST(Heap, CountsTheFreeEndOfTheUsablePartWhenItSaysWhatIsMissing) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), 8192);
  ASSERT_NE(heap.allocate(4096), nullptr);
  EXPECT_EQ(heap.missing(4096), 0U);
  EXPECT_EQ(heap.missing(4097), 64U);
  EXPECT_EQ(heap.missing(kMiB - 4096), kMiB - 8192);
  EXPECT_EQ(heap.missing(kMiB - 4095), std::nullopt);
  EXPECT_EQ(heap.missing(SIZE_MAX), std::nullopt);
  heap.extend(kMiB);
  EXPECT_NE(heap.allocate(kMiB - 4096), nullptr);
}

TEST(Heap, NeverShrinksWhatIsUsable) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), 8192);
  heap.extend(4096);
  EXPECT_EQ(heap.usable(), 8192U);
  heap.extend(4 * kMiB);
  EXPECT_EQ(heap.usable(), kMiB);
}

TEST(Heap, ServesFromFreedBlocksBeforeItNeedsMore) {
  SharedMemory memory(64 * kMiB);
  Heap heap(memory.span(), 32 * kMiB);
  void* all = heap.allocate(32 * kMiB);
  std::memset(all, 1, 32 * kMiB);
  const std::size_t pages = memory.bytes_with_pages();
  heap.release(all);
  EXPECT_EQ(heap.missing(32 * kMiB), 0U);
  EXPECT_EQ(heap.allocate(32 * kMiB), all);
  EXPECT_EQ(memory.bytes_with_pages(), pages) << "a freed block keeps its pages";
}

TEST(Heap, BlocksNeverOverlapAndNothingIsLostInALongRandomLife) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  SharedMemory memory(8 * kMiB);
  Heap heap(memory.span(), memory.span().size());
  struct Block {
    unsigned char* data;
    std::size_t bytes;
    unsigned char fill;
  };
  std::vector<Block> blocks;
  for (int round = 0; round < 5000; ++round) {
    if (random() % 5 < 3 || blocks.empty()) {
      const std::size_t bytes = random() % (random() % 20 == 0 ? 3 * kMiB : 20000);
      auto* data = static_cast<unsigned char*>(heap.allocate(bytes));
      if (data == nullptr) continue;
      const auto fill = static_cast<unsigned char>(random());
      std::memset(data, fill, bytes);
      blocks.push_back({data, bytes, fill});
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Block block = blocks.back();
      blocks.pop_back();
      // Another block's fill would show here.
      const bool intact = std::all_of(block.data, block.data + block.bytes,
                                      [&](unsigned char byte) { return byte == block.fill; });
      ASSERT_TRUE(intact) << "round " << round;
      ASSERT_TRUE(heap.release(block.data));
    }
  }
  for (const Block& block : blocks) ASSERT_TRUE(heap.release(block.data));
  EXPECT_EQ(heap.largest_free(), heap.capacity());
}

TEST(Heap, LosesNoFreeRangeWhereThereIsNoMemoryForItsTables) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span(), kMiB);
  void* first = heap.allocate(1024);
  heap.allocate(1024);
  void* last = heap.allocate(1024);
  bool is_refused = false;
  {
    const NoMemory none;
    try {
      heap.allocate(1024);
    } catch (const std::bad_alloc&) {
      is_refused = true;
    }
    heap.release(last);
    heap.release(first);
  }
  EXPECT_TRUE(is_refused);
  EXPECT_EQ(heap.used(), 1024U);
  EXPECT_EQ(heap.largest_free(), kMiB - 2048);
  EXPECT_EQ(heap.allocate(kMiB - 2048), last);
  EXPECT_EQ(heap.allocate(64), first) << "the block without free neighbours is there, too";
}

}  // namespace
}  // namespace gradcube::trainer
