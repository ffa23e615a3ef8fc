// One thing for all groups of a process. A forked child has one of its own, as it has its own
// memory: that of its parent may have been locked at the fork.
//
// Threads: any. It is never destroyed: threads of groups may outlive what is static.
#ifndef GRADCUBE_TRAINER_TORCH_OF_PROCESS_H_
#define GRADCUBE_TRAINER_TORCH_OF_PROCESS_H_

#include <atomic>
#include <memory>
#include <sys/types.h>
#include <unistd.h>

namespace gradcube::pytorch {

template <typename Thing>
Thing& of_process() {
  struct Owned {
    Thing thing;
    pid_t process = ::getpid();
  };
  static std::atomic<Owned*> latest{nullptr};
  Owned* known = latest;
  while (known == nullptr || known->process != ::getpid()) {
    auto made = std::make_unique<Owned>();
    if (latest.compare_exchange_strong(known, made.get())) return made.release()->thing;
  }
  return known->thing;
}

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_OF_PROCESS_H_
