#include "trainer/src/base/private_in_child.h"

#include <cstring>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <utility>

#include "trainer/src/base/failure.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// All memory of this process that is to be private in its children. It is the library's only
// global: pthread_atfork() hands its handlers nothing. It is never destroyed, as a process may fork
// while it ends.
struct Shared {
  std::mutex mutex;  // held while a thread forks
  std::vector<PrivateInChild*> memories;
  int refusal = 0;  // of the handlers
};

Shared& shared_memories() {
  static Shared& shared = *new Shared;
  return shared;
}

}  // namespace

PrivateInChild::PrivateInChild(std::span<std::byte> memory, Used used, GiveUp give_up)
    : memory_(memory), used_(std::move(used)), give_up_(std::move(give_up)) {
  Shared& shared = shared_memories();
  static std::once_flag once;
  std::call_once(once,
                 [&] { shared.refusal = ::pthread_atfork(&before_fork, &in_parent, &in_child); });
  if (shared.refusal != 0) {
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot keep this process's memory from the "
                                                      "children that it may fork",
                                                      shared.refusal));
  }
  const std::scoped_lock lock(shared.mutex);
  shared.memories.push_back(this);
}

PrivateInChild::~PrivateInChild() {
  Shared& shared = shared_memories();
  const std::scoped_lock lock(shared.mutex);
  std::erase(shared.memories, this);
}

void PrivateInChild::end_with(const std::function<void()>& replace) {
  Shared& shared = shared_memories();
  const std::scoped_lock lock(shared.mutex);
  replace();
  std::erase(shared.memories, this);
}

void PrivateInChild::between_forks(const std::function<void()>& call) {
  const std::scoped_lock lock(shared_memories().mutex);
  call();
}

void PrivateInChild::before_fork() noexcept {
  Shared& shared = shared_memories();
  shared.mutex.lock();
  for (PrivateInChild* memory : shared.memories) memory->copy();
}

void PrivateInChild::in_parent() noexcept {
  Shared& shared = shared_memories();
  for (PrivateInChild* memory : shared.memories) {
    if (std::byte* copy = std::exchange(memory->copy_, nullptr); copy != nullptr) {
      ::munmap(copy, memory->memory_.size());
    }
  }
  shared.mutex.unlock();
}

// No other code of the child has run. Nothing is allocated here: another thread may have held the
// allocator's locks at the fork.
void PrivateInChild::in_child() noexcept {
  Shared& shared = shared_memories();
  for (PrivateInChild* memory : shared.memories) {
    if (std::exchange(memory->is_private_, true)) continue;
    if (memory->give_up_) memory->give_up_();
    const auto [place, bytes] = std::pair(memory->memory_.data(), memory->memory_.size());
    std::byte* copy = std::exchange(memory->copy_, nullptr);
    if (copy == nullptr ||
        ::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) {
      ::mprotect(place, bytes, PROT_NONE);  // which needs no memory, as a mapping may
    }
  }
  shared.mutex.unlock();
}

void PrivateInChild::copy() noexcept {
  if (is_private_) return;
  void* mapped = ::mmap(nullptr, memory_.size(), PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  if (mapped == MAP_FAILED) return;
  try {
    for (const std::span<const std::byte> piece : used_()) {
      std::byte* to = static_cast<std::byte*>(mapped) + (piece.data() - memory_.data());
      std::memcpy(to, piece.data(), piece.size());
    }
    copy_ = static_cast<std::byte*>(mapped);
  } catch (const std::exception&) {  // no memory for the list
    ::munmap(mapped, memory_.size());
  }
}

}  // namespace gradcube::trainer
