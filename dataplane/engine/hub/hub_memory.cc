#include "dataplane/engine/hub/hub_memory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/engine/memory/shared_pages.h"
#include "dataplane/host/attempt.h"
#include "dataplane/host/memory_placement.h"
#include "trainer/shared_mapping.h"

namespace gradcube::dataplane {

namespace {

// What the memfd is called in /proc/PID/maps.
constexpr const char* kName = "gradcube-hub";

}  // namespace

HubMemory::HubMemory(std::uint64_t bytes, std::optional<unsigned> numa_node) : bytes_(bytes) {
  const auto fail = [bytes](const char* what) {
    throw control::SetupError(
        fmt::format("cannot {} a hub's memory of {} bytes: {}", what, bytes, std::strerror(errno)));
  };
  file_ = control::Descriptor(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file_.get() < 0) fail("create");
  if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("size");
  void* mapping = shared::map_region(file_.get(), bytes);
  if (mapping == nullptr) fail("map");
  base_ = static_cast<std::uint8_t*>(mapping);
  prefer_numa_node(base_, bytes, numa_node);
  madvise(base_, bytes, MADV_DONTDUMP);
  // Unlike a write, it says when there is no memory.
  if (const int error = posix_fallocate(file_.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    unmap();
    fail("get");
  }
  std::memset(base_, 0, bytes);
  shared::take_huge_pages({reinterpret_cast<std::byte*>(base_), bytes});
  if (fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    unmap();
    fail("seal");
  }
  const std::string path = fmt::format("/proc/self/fd/{}", file_.get());
  readers_ = control::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (readers_.get() < 0) {
    unmap();
    fail("open for reading");
  }
}

HubMemory::~HubMemory() {
  // Also of a hub that was given up before any trainer had it.
  if (charge_ != nullptr) attempt([this] { charge_->go(); });
  give_back({file_.release(), base_, bytes_},
            goes_at_the_end() ? OtherReaders::lose_them : OtherReaders::keep_them,
            std::move(charge_));
}

// Keeps errno.
void HubMemory::unmap() {
  const int error = errno;
  munmap(base_, bytes_);
  errno = error;
}

}  // namespace gradcube::dataplane
