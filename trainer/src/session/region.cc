#include "trainer/src/session/region.h"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>

#include "trainer/shared_mapping.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/pages.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

void check(bool holds, const std::string& what) {
  if (!holds) {
    throw Failure(GRADCUBE_EPROTOCOL, "the daemon's shared region is unusable: " + what +
                                          ": use the library that came with the daemon");
  }
}

void check_file(int fd, std::uint64_t bytes, std::uint64_t heap_bytes) {
  check(bytes >= shared::kHeapOffset && bytes - shared::kHeapOffset >= heap_bytes,
        "its " + std::to_string(bytes) + " bytes are too few for a heap of " +
            std::to_string(heap_bytes));
  struct stat file {};
  check(::fstat(fd, &file) == 0 && file.st_size >= 0 &&
            static_cast<std::uint64_t>(file.st_size) == bytes,
        "its file does not have the size announced");
  const int seals = ::fcntl(fd, F_GET_SEALS);
  check(seals >= 0 && (seals & F_SEAL_SHRINK) != 0, "its file is not sealed against shrinking");
}

void check_header(const shared::RegionHeader& header, std::uint64_t bytes) {
  check(header.magic == shared::kMagic, "it does not begin with the magic number");
  check(header.version == shared::kLayoutVersion,
        "its layout has version " + std::to_string(header.version) + ", and this library has " +
            std::to_string(shared::kLayoutVersion));
  check(header.ring_entries == shared::kRingEntries, "its rings have another size");
  check(header.region_bytes == bytes, "its header gives another size than the welcome");
}

// After the trainer's own mapping: the seals allow no further one that can be written to.
void seal(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, shared::kSeals) == 0) return;
  throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot seal the shared region", errno) +
                                      ": a kernel of Linux 5.1 or later is needed");
}

}  // namespace

Region::Region(Descriptor file, std::uint64_t bytes, std::uint64_t heap_bytes)
    : file_(std::move(file)), bytes_(bytes) {
  check_file(file_.get(), bytes, heap_bytes);
  void* mapped = shared::map_region(file_.get(), bytes_);
  if (mapped == nullptr) {
    throw Failure(GRADCUBE_ESYSTEM,
                  with_system_error("cannot map the shared region of " + std::to_string(bytes) +
                                        " bytes (a smaller GRADCUBE_HEAP may help)",
                                    errno));
  }
  base_ = static_cast<std::byte*>(mapped);
  try {
    check_header(header(), bytes);
    seal(file_.get());
  } catch (...) {
    unmap();
    throw;
  }
}

int Region::touch(std::uint64_t begin, std::uint64_t end) const {
  return trainer::touch({base_ + begin, base_ + end});
}

bool Region::part_heap(std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  // Elsewhere first: where it fails the heap is still whole.
  constexpr int kOwn = MAP_PRIVATE | MAP_NORESERVE;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  void* own = ::mmap(nullptr, bytes, kAccess, kOwn, file_.get(), shared::kHeapOffset);
  return own != MAP_FAILED &&
         ::mremap(own, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, heap().data()) != MAP_FAILED;
}

void Region::give_up_heap(std::size_t bytes) noexcept {
  is_gone_ = true;
  std::byte* const place = heap().data();
  // Memory that nobody can touch takes none.
  constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(place, bytes, PROT_NONE, kNothing, -1, 0) == MAP_FAILED) {
    ::mprotect(place, bytes, PROT_NONE);
  }
}

void Region::unmap() {
  file_.reset();
  if (base_ != nullptr) ::munmap(std::exchange(base_, nullptr), bytes_);
}

shared::RegionHeader& Region::header() const {
  return *reinterpret_cast<shared::RegionHeader*>(base_);
}

shared::Submission* Region::submissions() const {
  return reinterpret_cast<shared::Submission*>(base_ + shared::kSubmissions);
}

const shared::Completion* Region::completions() const {
  return reinterpret_cast<const shared::Completion*>(base_ + shared::kCompletions);
}

std::span<std::byte> Region::heap() const {
  return {base_ + shared::kHeapOffset, bytes_ - shared::kHeapOffset};
}

std::uint64_t Region::offset_of(const void* address) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
}

}  // namespace gradcube::trainer
