// Memory that is shared with trainers, and how it is given back.

#include "dataplane/engine/memory/shared_pages.h"

#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "control/base/descriptor.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kSmall = 1 << 20;
constexpr std::uint64_t kLargest = std::uint64_t{48} << 20;

SharedPages pages_of(std::uint64_t bytes) {
  SharedPages pages{memfd_create("gradcube-test", MFD_CLOEXEC), nullptr, bytes};
  EXPECT_EQ(ftruncate(pages.file, static_cast<off_t>(bytes)), 0);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pages.file, 0);
  EXPECT_NE(base, MAP_FAILED);
  pages.base = static_cast<std::uint8_t*>(base);
  std::memset(base, 1, bytes);
  return pages;
}

blkcnt_t blocks_of(const control::Descriptor& file) {
  struct stat facts {};
  EXPECT_EQ(fstat(file.get(), &facts), 0);
  return facts.st_blocks;
}

// Those of a large one go some time later.
TEST(SharedPages, GoThoughAnotherHasTheFile) {
  for (const std::uint64_t bytes : {kSmall, kLargest}) {
    const SharedPages pages = pages_of(bytes);
    const control::Descriptor others(dup(pages.file));
    give_back(pages, OtherReaders::lose_them);
    while (bytes == kLargest && blocks_of(others) != 0) std::this_thread::yield();
    EXPECT_EQ(blocks_of(others), 0);
  }
}

TEST(SharedPages, StayForWhoKeepsTheFile) {
  for (const std::uint64_t bytes : {kSmall, kLargest}) {
    const SharedPages pages = pages_of(bytes);
    const control::Descriptor others(dup(pages.file));
    give_back(pages, OtherReaders::keep_them);
    while (fcntl(pages.file, F_GETFD) >= 0) std::this_thread::yield();
    EXPECT_GE(blocks_of(others) * 512, static_cast<blkcnt_t>(bytes));
  }
}

}  // namespace
}  // namespace gradcube::dataplane
