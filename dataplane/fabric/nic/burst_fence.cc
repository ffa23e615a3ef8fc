#include "dataplane/fabric/nic/burst_fence.h"

#include <cerrno>
#include <cstddef>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <system_error>
#include <time.h>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

// A list, because munmap() must not allocate.
constinit std::mutex list_mutex;
constinit BurstFence* first_fence = nullptr;

constexpr timespec kLook{0, 20'000};

int membarrier(int command) { return static_cast<int>(syscall(SYS_membarrier, command, 0, 0)); }

}  // namespace

BurstFence::BurstFence() {
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0) {
    throw control::SetupError(fmt::format(
        "the system call membarrier() is refused: {}. It takes Linux 4.14, and a sandbox must let "
        "it pass",
        std::generic_category().message(errno)));
  }
  const std::lock_guard lock(list_mutex);
  next_ = first_fence;
  link_to_this_ = &first_fence;
  if (next_ != nullptr) next_->link_to_this_ = &next_;
  first_fence = this;
}

BurstFence::~BurstFence() {
  const std::lock_guard lock(list_mutex);
  *link_to_this_ = next_;
  if (next_ != nullptr) next_->link_to_this_ = link_to_this_;
}

void BurstFence::await_bursts() {
  const std::lock_guard lock(list_mutex);
  if (first_fence == nullptr) return;
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (const BurstFence* fence = first_fence; fence != nullptr; fence = fence->next_) {
    fence->await();
  }
}

void BurstFence::await() const {
  const std::uint64_t turn = turns_.load(std::memory_order_acquire);
  if (turn % 2 == 0) return;
  while (turns_.load(std::memory_order_acquire) == turn) nanosleep(&kLook, nullptr);
}

}  // namespace gradcube::dataplane

// Found before the C library's by everything that calls it through the dynamic linker.
extern "C" int munmap(void* address, std::size_t bytes) noexcept {
  const int before = errno;
  gradcube::dataplane::BurstFence::await_bursts();
  errno = before;
  return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
