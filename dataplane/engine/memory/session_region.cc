#include "dataplane/engine/memory/session_region.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/engine/memory/shared_pages.h"
#include "dataplane/host/memory_placement.h"
#include "trainer/shared_mapping.h"

namespace gradcube::dataplane {

namespace {

// Of what has other types, too.
using Word [[gnu::may_alias]] = std::uint64_t;

std::uint64_t read_once(const Word& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

SessionRegion::SessionRegion(std::uint64_t heap_bytes, MemoryQuota::Charge charge,
                             std::optional<unsigned> numa_node)
    : charge_(std::move(charge)) {
  const std::uint64_t page = page_bytes();
  bytes_ = shared::kHeapOffset + (heap_bytes + page - 1) / page * page;

  descriptor_ = memfd_create(kRegionName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const auto fail = [&](const char* what) {
    const int error = errno;
    if (descriptor_ >= 0) close(descriptor_);
    throw control::SetupError(fmt::format(
        "cannot {} a session's shared memory of {} bytes: {}{}", what, bytes_, std::strerror(error),
        error == EFBIG    ? ": raise the daemon's limit of file sizes (ulimit -f), or set "
                            "GRADCUBE_HEAP to less"
        : error == ENOMEM ? ": raise the daemon's limit of memory (ulimit -v), or set "
                            "GRADCUBE_HEAP to less"
                          : ""));
  };
  if (descriptor_ < 0) fail("create");
  if (ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) fail("size");
  // The trainer sets the other seals once it has its own mapping: F_SEAL_FUTURE_WRITE allows no new
  // one that can be written to.
  if (fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) fail("seal");
  void* mapping = shared::map_region(descriptor_, bytes_);
  if (mapping == nullptr) fail("map");
  base_ = static_cast<std::uint8_t*>(mapping);
  try {
    guard_.emplace(base_, bytes_);
  } catch (...) {
    munmap(base_, bytes_);
    close(descriptor_);
    throw;
  }
  // A core dump of the daemon leaves out the trainers' gradients.
  madvise(base_, bytes_, MADV_DONTDUMP);
  prefer_numa_node(base_, bytes_, numa_node);

  auto* header = new (base_) shared::RegionHeader{};
  header->magic = shared::kMagic;
  header->version = shared::kLayoutVersion;
  header->ring_entries = shared::kRingEntries;
  header->region_bytes = bytes_;
}

SessionRegion::~SessionRegion() {
  guard_.reset();
  std::shared_ptr<const MemoryQuota::Charge> charge;
  try {
    charge = std::make_shared<const MemoryQuota::Charge>(std::move(charge_));
  } catch (const std::bad_alloc&) {
    // The user has it back at once.
  }
  give_back({descriptor_, base_, bytes_}, OtherReaders::keep_them, std::move(charge));
}

shared::Submission SessionRegion::read_submission(std::uint64_t index) const {
  std::array<std::uint64_t, sizeof(shared::Submission) / sizeof(std::uint64_t)> words{};
  const auto* entry = reinterpret_cast<const Word*>(base_ + shared::kSubmissions) +
                      index % shared::kSubmissionEntries * words.size();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = read_once(entry[i]);
  return std::bit_cast<shared::Submission>(words);
}

bool SessionRegion::is_sealed() const {
  const int seals = fcntl(descriptor_, F_GET_SEALS);
  return seals >= 0 && (seals & shared::kSeals) == shared::kSeals;
}

const char* SessionRegion::problem_of(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset < shared::kHeapOffset || offset > bytes_ || offset % shared::kBufferAlignment != 0 ||
      bytes > bytes_ - offset) {
    return "a submission's buffer lies outside its heap";
  }
  if (offset + bytes > confirmed()) {
    return "a submission's buffer lies beyond the memory that its daemon has confirmed";
  }
  return nullptr;
}

bool SessionRegion::has_pages(std::uint64_t begin, std::uint64_t end) const {
  std::vector<unsigned char> pages((end - begin) / page_bytes());
  if (pages.empty()) return true;
  if (mincore(base_ + begin, end - begin, pages.data()) != 0) return false;
  return std::all_of(pages.begin(), pages.end(),
                     [](unsigned char page) { return (page & 1) != 0; });
}

std::uint64_t SessionRegion::resident_bytes() const {
  struct stat facts {};
  if (fstat(descriptor_, &facts) != 0) return 0;
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

}  // namespace gradcube::dataplane
