#include "trainer/src/heap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

#include "trainer/shared_mapping.h"
#include "trainer/src/descriptor.h"

namespace gradcube::trainer {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A shared file mapping, as the session's heap is one.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : file_(::memfd_create("heap-test", MFD_CLOEXEC)), bytes_(bytes) {
    EXPECT_EQ(::ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
    base_ = shared::map_region(file_.get(), bytes);
    EXPECT_NE(base_, nullptr);
  }
  ~SharedMemory() { ::munmap(base_, bytes_); }

  std::span<std::byte> span() const { return {static_cast<std::byte*>(base_), bytes_}; }

  std::size_t bytes_with_pages() const {
    struct stat status {};
    EXPECT_EQ(::fstat(file_.get(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }
  // Of a part of it that begins at a page.
  static std::size_t bytes_with_pages(void* begin, std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    std::vector<unsigned char> present(bytes / kPage);
    EXPECT_EQ(::mincore(begin, bytes, present.data()), 0);
    const auto is_here = [](unsigned char flags) { return (flags & 1) != 0; };
    return kPage * static_cast<std::size_t>(std::count_if(present.begin(), present.end(), is_here));
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

TEST(Heap, EveryBlockIsAligned) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span());
  for (std::size_t bytes : {0, 1, 63, 64, 65, 1000, 4096, 100000}) {
    void* block = heap.allocate(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
  }
}

TEST(Heap, GivesNullWhenItIsFullAndServesAgainAfterARelease) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span());
  void* all = heap.allocate(kMiB);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(heap.allocate(1), nullptr);
  EXPECT_EQ(heap.largest_free(), 0U);
  EXPECT_TRUE(heap.release(all));
  EXPECT_EQ(heap.allocate(kMiB), all);
}

TEST(Heap, KeepsNoMorePagesThanToldWhereUntouchedMemoryLiesBeforeTouched) {
  SharedMemory memory(128 * kMiB);
  constexpr std::size_t kBlock = 16 * kMiB;
  constexpr std::size_t kKeep = 20 * kMiB;
  Heap heap(memory.span(), kKeep);
  void* other = heap.allocate(kBlock);
  heap.allocate(kBlock);
  void* untouched = heap.allocate(kBlock);
  void* touched = heap.allocate(kBlock);
  heap.allocate(kBlock);
  // Two free ranges of a block may hold more pages than may be kept: the second gives its own back.
  heap.release(other);
  heap.release(untouched);
  EXPECT_EQ(heap.allocate(kBlock), other);
  std::memset(touched, 1, kBlock);
  heap.release(touched);
  EXPECT_EQ(heap.allocate(kBlock), untouched);
  std::memset(other, 1, kBlock);
  heap.release(other);
  EXPECT_LE(memory.bytes_with_pages(other, kBlock) + memory.bytes_with_pages(touched, kBlock),
            kKeep);
}

TEST(Heap, GivesNullToSizesThatOverflowWhenRoundedUp) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span());
  EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX - 62), nullptr);
  EXPECT_EQ(heap.allocate(kMiB + 1), nullptr);
  EXPECT_EQ(heap.used(), 0U);
}

TEST(Heap, MergesWithBothNeighboursInEveryOrderOfRelease) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    SharedMemory memory(kMiB);
    Heap heap(memory.span());
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(heap.allocate(kMiB / 4));
    for (int i : order) ASSERT_TRUE(heap.release(blocks[static_cast<std::size_t>(i)]));
    EXPECT_EQ(heap.free_ranges(), 1U);
    EXPECT_EQ(heap.largest_free(), kMiB);
    EXPECT_EQ(heap.used(), 0U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Heap, TakesTheSmallestRangeThatFits) {
  SharedMemory memory(kMiB);
  Heap heap(memory.span());
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
  Heap heap(memory.span());
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
  Heap heap(memory.span());
  auto* first = static_cast<std::byte*>(heap.allocate(128));
  auto* second = static_cast<std::byte*>(heap.allocate(256));
  EXPECT_EQ(heap.block_of(first + 127).data(), first);
  EXPECT_EQ(heap.block_of(second + 100).data(), second);
  EXPECT_EQ(heap.block_of(second + 100).size(), 256U);
  EXPECT_TRUE(heap.block_of(second + 256).empty());
  heap.release(first);
  EXPECT_TRUE(heap.block_of(first).empty());
}

TEST(Heap, GivesPagesBackOnceMoreThanItMayKeepAreFree) {
  SharedMemory memory(64 * kMiB);
  Heap heap(memory.span(), 8 * kMiB);
  void* kept = heap.allocate(4 * kMiB);
  void* guard = heap.allocate(4096);
  void* large = heap.allocate(32 * kMiB);
  std::memset(kept, 1, 4 * kMiB);
  std::memset(guard, 2, 4096);
  std::memset(large, 3, 32 * kMiB);
  heap.release(kept);
  EXPECT_GE(memory.bytes_with_pages(), 36 * kMiB);
  heap.release(large);
  EXPECT_LE(memory.bytes_with_pages(), 5 * kMiB);
  EXPECT_GE(memory.bytes_with_pages(), 4 * kMiB);
  EXPECT_EQ(*static_cast<char*>(guard), 2);
}

TEST(Heap, TakesTheMemoryOfWholeHugePagesWithABlockAndOfNoOthers) {
  SharedMemory memory(16 * kMiB);
  if (!shared::take_huge_pages(memory.span().first(shared::kHugePage))) {
    GTEST_SKIP() << "this system gives no huge pages for shared memory";
  }
  Heap heap(memory.span());
  const std::size_t before = memory.bytes_with_pages();
  heap.allocate(shared::kHugePage);  // has them already
  EXPECT_EQ(memory.bytes_with_pages(), before);
  heap.allocate(kMiB);  // no whole huge page
  EXPECT_EQ(memory.bytes_with_pages(), before);
  // From 3 to 8 MiB: the huge pages from 4 MiB on.
  heap.allocate(5 * kMiB);
  EXPECT_EQ(memory.bytes_with_pages(), before + 2 * shared::kHugePage);
}

TEST(Heap, TakesHugePagesAnewForABlockWhosePagesWereGivenBack) {
  SharedMemory memory(16 * kMiB);
  if (!shared::take_huge_pages(memory.span().first(shared::kHugePage))) {
    GTEST_SKIP() << "this system gives no huge pages for shared memory";
  }
  Heap heap(memory.span(), 0);
  void* block = heap.allocate(8 * kMiB);
  EXPECT_EQ(memory.bytes_with_pages(), 8 * kMiB);
  heap.release(block);
  EXPECT_EQ(memory.bytes_with_pages(), 0U);
  EXPECT_EQ(heap.allocate(8 * kMiB), block);
  EXPECT_EQ(memory.bytes_with_pages(), 8 * kMiB);
}

TEST(Heap, BlocksNeverOverlapAndNothingIsLostInALongRandomLife) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  SharedMemory memory(8 * kMiB);
  Heap heap(memory.span(), kMiB);
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
      // Another block's fill, or a page given back, would show here.
      const bool intact = std::all_of(block.data, block.data + block.bytes,
                                      [&](unsigned char byte) { return byte == block.fill; });
      ASSERT_TRUE(intact) << "round " << round;
      ASSERT_TRUE(heap.release(block.data));
    }
  }
  for (const Block& block : blocks) ASSERT_TRUE(heap.release(block.data));
  EXPECT_EQ(heap.free_ranges(), 1U);
  EXPECT_EQ(heap.largest_free(), heap.capacity());
}

}  // namespace
}  // namespace gradcube::trainer
