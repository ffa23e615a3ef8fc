#include "dataplane/engine/memory/shared_pages.h"

#include <algorithm>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace gradcube::dataplane {

namespace {

// Less takes a few milliseconds.
constexpr std::uint64_t kLarge = std::uint64_t{32} << 20;
constexpr std::uint64_t kBlock = 512;  // of st_blocks

bool is_large(int file) {
  struct stat facts {};
  return fstat(file, &facts) == 0 && static_cast<std::uint64_t>(facts.st_blocks) * kBlock > kLarge;
}

void give_back_now(const SharedPages& pages, OtherReaders others) {
  for (std::uint64_t begin = 0; begin < pages.bytes; begin += kLarge) {
    if (others == OtherReaders::lose_them) {
      fallocate(pages.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                static_cast<off_t>(kLarge));
    }
    munmap(pages.base + begin, std::min(kLarge, pages.bytes - begin));
  }
  close(pages.file);
}

}  // namespace

void give_back(const SharedPages& pages, OtherReaders others,
               std::shared_ptr<const MemoryQuota::Charge> charge) {
  if (is_large(pages.file)) {
    try {
      std::thread([pages, others, charge] { give_back_now(pages, others); }).detach();
      return;
    } catch (const std::exception&) {
      // There is no thread, or no memory for one.
    }
  }
  give_back_now(pages, others);
}

}  // namespace gradcube::dataplane
