// The last failure of each thread on one session: what gradcube_last_error() returns.
//
// Any thread; each sees its own entry alone. The entries go with the session, and that of a thread
// that has ended with the next thread's first failure. Also while a thread or the process ends,
// after what belongs to the thread was destroyed: handlers of exit() may make calls.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_FAILURES_H_
#define GRADCUBE_TRAINER_SRC_SESSION_FAILURES_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

struct LastFailure {
  int code = GRADCUBE_OK;
  std::string message;  // empty when there was no memory for one
};

class Failures {
 public:
  // Returns `code`.
  int set(int code, std::string message) noexcept {
    try {
      if (this_thread() == nullptr) begin_thread();
      const Thread& thread = *this_thread();
      const std::scoped_lock lock(mutex_);
      auto found = by_thread_.find(thread);
      if (found == by_thread_.end()) {
        std::erase_if(by_thread_, [](const auto& entry) { return entry.first->load(); });
        found = by_thread_.emplace(thread, LastFailure()).first;
      }
      found->second.code = code;
      found->second.message = std::move(message);
    } catch (const std::bad_alloc&) {
      // Then the thread's failure before this one stays its last.
    }
    return code;
  }

  // Of the calling thread. Valid until its next set().
  const LastFailure& last() const {
    static const LastFailure& none = *new LastFailure;  // never destroyed
    if (this_thread() == nullptr) return none;
    const std::scoped_lock lock(mutex_);
    const auto found = by_thread_.find(*this_thread());
    return found == by_thread_.end() ? none : found->second;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  // Whether the thread has ended. Unlike a thread's id, the object is never another thread's, as
  // long as an entry holds it.
  using Thread = std::shared_ptr<std::atomic<bool>>;

  // Null before the thread's first failure, and again once what belongs to the thread is destroyed.
  // It has no destructor.
  static const Thread*& this_thread() {
    thread_local const Thread* thread = nullptr;
    return thread;
  }

  // Nothing marks a thread as ended that fails only while it ends: what it gets here stays.
  static void begin_thread() {
    struct Life {
      ~Life() {
        const std::unique_ptr<const Thread> thread(std::exchange(this_thread(), nullptr));
        if (thread != nullptr) (*thread)->store(true);
      }
    };
    this_thread() = new Thread(std::make_shared<std::atomic<bool>>(false));
    thread_local const Life life;
  }

  mutable std::mutex mutex_;
  std::map<Thread, LastFailure> by_thread_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_FAILURES_H_
