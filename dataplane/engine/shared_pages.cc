#include "dataplane/engine/shared_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

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
  if (others == OtherReaders::lose_them) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    fallocate(pages.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              static_cast<off_t>((pages.bytes + page - 1) / page * page));
  }
  munmap(pages.base, pages.bytes);
  close(pages.file);
}

}  // namespace

void give_back(const SharedPages& pages, OtherReaders others) {
  if (is_large(pages.file)) {
    try {
      std::thread([pages, others] { give_back_now(pages, others); }).detach();
      return;
    } catch (const std::system_error&) {
      // There is no thread.
    }
  }
  give_back_now(pages, others);
}

}  // namespace gradcube::dataplane
