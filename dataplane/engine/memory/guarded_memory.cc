#include "dataplane/engine/memory/guarded_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

// A free slot has no base. The base is published last and taken back first; so a handler that
// reads the same base before and after the size has the size that belongs to it.
struct Slot {
  std::atomic<std::uintptr_t> base;
  std::atomic<std::uint64_t> bytes;
  std::atomic<bool> faulted;
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

std::array<Slot, GuardedMemory::kMost> slots;
std::atomic<std::size_t> slots_used;  // no slot from here on was ever used
std::atomic<std::uint32_t> fault_count;
std::atomic<std::uint32_t> settled_count;
struct sigaction before;  // the disposition that the handler replaced

// Only what may be done in a signal handler from here on.

bool contain(Slot& slot, std::uintptr_t address) {
  const std::uintptr_t base = slot.base.load(std::memory_order_acquire);
  const std::uint64_t bytes = slot.bytes.load(std::memory_order_acquire);
  if (base == 0 || address < base || address - base >= bytes) return false;
  if (slot.base.load(std::memory_order_acquire) != base) return false;
  // The marks come first: who sees the zeros can see that they are none of the trainer's.
  slot.faulted.store(true, std::memory_order_release);
  fault_count.fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t begin = (address - base) / GuardedMemory::kChunk * GuardedMemory::kChunk;
  const std::uint64_t length = std::min(GuardedMemory::kChunk, bytes - begin);
  // The bare system call: a race detector takes mmap() for a write to the whole chunk, while other
  // threads' accesses to it go on here as they would have failed before.
  const auto chunk = static_cast<long>(base + begin);
  return syscall(SYS_mmap, chunk, length, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == chunk;
}

void on_bus_error(int, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_fault = info->si_code > 0;  // not sent by a process
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::size_t used = slots_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; is_fault && i < used; ++i) {
    if (contain(slots[i], address)) {
      errno = error;
      return;
    }
  }
  // The instruction faults again when this returns, and the signal has its former effect. One that
  // was sent does not come by itself again.
  sigaction(SIGBUS, &before, nullptr);
  if (!is_fault) raise(SIGBUS);
  errno = error;
}

}  // namespace

void GuardedMemory::install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, &action, &before) != 0) {
    throw control::SetupError(
        fmt::format("cannot install a handler for SIGBUS: {}", std::strerror(errno)));
  }
}

GuardedMemory::GuardedMemory(std::uint8_t* base, std::uint64_t bytes) : slot_(0) {
  const std::size_t used = slots_used.load(std::memory_order_relaxed);
  while (slot_ < used && slots[slot_].base.load(std::memory_order_relaxed) != 0) ++slot_;
  if (slot_ == kMost) {
    throw control::SetupError(fmt::format(
        "this process has {} sessions, the most that it can guard: close some of them", kMost));
  }
  Slot& slot = slots[slot_];
  slot.faulted.store(false, std::memory_order_relaxed);
  slot.bytes.store(bytes, std::memory_order_release);
  slot.base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_release);
  slots_used.store(std::max(used, slot_ + 1), std::memory_order_release);
}

GuardedMemory::~GuardedMemory() { slots[slot_].base.store(0, std::memory_order_release); }

bool GuardedMemory::faulted() const { return slots[slot_].faulted.load(std::memory_order_acquire); }

std::uint32_t GuardedMemory::faults() { return fault_count.load(std::memory_order_acquire); }

void GuardedMemory::settle(std::uint32_t faults) {
  settled_count.store(faults, std::memory_order_release);
}

bool GuardedMemory::pending() {
  return fault_count.load(std::memory_order_acquire) !=
         settled_count.load(std::memory_order_relaxed);
}

}  // namespace gradcube::dataplane
