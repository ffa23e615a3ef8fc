#include "trainer/shared_mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/src/base/descriptor.h"

namespace gradcube::trainer {
namespace {

using shared::kHugePage;

// A file of zeros that is mapped as a session's region is.
class MappedFile {
 public:
  explicit MappedFile(std::size_t bytes)
      : file_(::memfd_create("mapping-test", MFD_CLOEXEC)), bytes_(bytes) {
    EXPECT_EQ(::ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
    memory_ = map();
  }
  ~MappedFile() { unmap(memory_); }

  std::span<std::byte> map() const {
    void* const begin = shared::map_region(file_.get(), bytes_);
    EXPECT_NE(begin, nullptr);
    return {static_cast<std::byte*>(begin), bytes_};
  }
  static void unmap(std::span<std::byte> memory) { ::munmap(memory.data(), memory.size()); }
  std::span<std::byte> memory() const { return memory_; }

 private:
  Descriptor file_;
  std::size_t bytes_;
  std::span<std::byte> memory_;
};

// Kibibytes of a mapping that huge pages map, as the kernel counts them.
std::uint64_t kibibytes_in_huge_pages(const std::byte* begin) {
  std::ifstream maps("/proc/self/smaps");
  std::string word;
  char start[32];
  std::snprintf(start, sizeof start, "%lx-", reinterpret_cast<unsigned long>(begin));
  while (maps >> word && !word.starts_with(start)) {
  }
  std::uint64_t kibibytes = 0;
  while (maps >> word && word != "ShmemPmdMapped:") {
  }
  maps >> kibibytes;
  return kibibytes;
}

TEST(SharedMapping, BeginsAtAMultipleOfAHugePageWhateverItsLength) {
  for (const std::size_t bytes : {std::size_t{4096}, kHugePage, 3 * kHugePage + 4096}) {
    const MappedFile file(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.memory().data()) % kHugePage, 0U) << bytes;
    std::fill(file.memory().begin(), file.memory().end(), std::byte{7});
  }
}

TEST(SharedMapping, TakesNoMoreAddressSpaceThanItsLength) {
  const auto pages = [] {
    std::uint64_t size = 0;
    std::ifstream("/proc/self/statm") >> size;
    return size;
  };
  const MappedFile file(kHugePage);
  const std::uint64_t before = pages();
  const std::span<std::byte> second = file.map();
  EXPECT_EQ(pages() - before, kHugePage / 4096);
  MappedFile::unmap(second);
  EXPECT_EQ(pages(), before);
}

TEST(SharedMapping, RefusesADescriptorThatIsNone) {
  EXPECT_EQ(shared::map_region(-1, kHugePage), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST(SharedMapping, KeepsWhatIsInThePagesThatBecomeHuge) {
  const MappedFile file(4 * kHugePage);
  const std::span<std::byte> memory = file.memory();
  for (std::size_t at = 0; at < memory.size(); at += 8192) {
    memory[at] = static_cast<std::byte>(at / 8192);
  }
  shared::take_huge_pages(memory);
  for (std::size_t at = 0; at < memory.size(); at += 4096) {
    const auto expected = at % 8192 == 0 ? static_cast<std::byte>(at / 8192) : std::byte{0};
    ASSERT_EQ(memory[at], expected) << at;
  }
}

TEST(SharedMapping, GivesHugePagesToBothSidesOfWhatIsTakenOnOne) {
  const MappedFile file(4 * kHugePage);
  const std::span<std::byte> other = file.map();
  if (!shared::take_huge_pages(file.memory())) {
    MappedFile::unmap(other);
    GTEST_SKIP() << "this system gives no huge pages for shared memory";
  }
  std::fill(file.memory().begin(), file.memory().end(), std::byte{1});
  EXPECT_TRUE(
      std::all_of(other.begin(), other.end(), [](std::byte b) { return b == std::byte{1}; }));
  EXPECT_EQ(kibibytes_in_huge_pages(file.memory().data()), 4 * kHugePage / 1024);
  EXPECT_EQ(kibibytes_in_huge_pages(other.data()), 4 * kHugePage / 1024);
  MappedFile::unmap(other);
}

TEST(SharedMapping, TakesNothingFromMemoryThatHoldsNoWholeHugePage) {
  const MappedFile file(2 * kHugePage);
  EXPECT_TRUE(shared::take_huge_pages(file.memory().subspan(64, 2 * kHugePage - 128)));
  EXPECT_EQ(kibibytes_in_huge_pages(file.memory().data()), 0U);
}

}  // namespace
}  // namespace gradcube::trainer
