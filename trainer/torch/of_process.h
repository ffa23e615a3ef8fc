// One thing for all groups of a process. A forked child has one of its own, as it has its own
// memory: that of its parent may have been locked at the fork.
//
// Each call asks some ten times which process this is. The kernel is asked once: its answer lies in
// a page that is zero in a child that has memory of its own, be it of fork() or of clone().
//
// Threads: any. It is never destroyed: threads of groups may outlive what is static.
#ifndef GRADCUBE_TRAINER_TORCH_OF_PROCESS_H_
#define GRADCUBE_TRAINER_TORCH_OF_PROCESS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace gradcube::pytorch {

// Null where the system has no such page. Made as the extension is loaded, so that no fork comes in
// between.
inline std::atomic<pid_t>* const process_page = [] {
  constexpr std::size_t kBytes = sizeof(std::atomic<pid_t>);
  void* const page =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // Some emulators take any advice.
  const bool is_wiped = page != MAP_FAILED && ::madvise(page, kBytes, MADV_WIPEONFORK) == 0 &&
                        ::madvise(page, kBytes, -1) != 0;
  return is_wiped ? new (page) std::atomic<pid_t>(0) : nullptr;
}();

inline pid_t process_number() {
  if (process_page == nullptr) return ::getpid();
  if (*process_page == 0) *process_page = ::getpid();
  return *process_page;
}

template <typename Thing>
Thing& of_process() {
  struct Owned {
    Thing thing;
    pid_t process = process_number();
  };
  static std::atomic<Owned*> latest{nullptr};
  Owned* known = latest;
  while (known == nullptr || known->process != process_number()) {
    auto made = std::make_unique<Owned>();
    if (latest.compare_exchange_strong(known, made.get())) return made.release()->thing;
  }
  return known->thing;
}

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_OF_PROCESS_H_
