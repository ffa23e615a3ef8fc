// The threads that wait in one session, and which of them leads.
//
// The leader sleeps in poll() for all: it takes completions and messages, and wakes those whose
// turn has come. The others, the followers, sleep on a condition variable of their own. When a
// leader has what it waited for, the first follower leads.
//
// Guarded by the session's mutex, which the sleeping release. Each waiter lies on its thread's
// stack. So in a forked child, where these threads do not exist, nothing is left to clean up.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_WAITERS_H_
#define GRADCUBE_TRAINER_SRC_SESSION_WAITERS_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "trainer/src/base/deadline.h"

namespace gradcube::trainer {

class Waiters {
 public:
  // What a thread waits for: the end of its request; that, or the daemon's answer to an inquiry
  // about it; the daemon's answer about memory; that no thread is getting memory; the daemon's
  // answer about a hub.
  enum class For { end, report, confirmation, memory, hub };

  // One thread's wait. In the list from the constructor to the destructor.
  class Waiter {
   public:
    Waiter(Waiters& waiters, For what, std::uint64_t request = 0)
        : what(what), request(request), waiters_(waiters), next_(waiters.first_) {
      if (next_ != nullptr) next_->previous_ = this;
      waiters_.first_ = this;
    }
    ~Waiter() {
      (previous_ == nullptr ? waiters_.first_ : previous_->next_) = next_;
      if (next_ != nullptr) next_->previous_ = previous_;
      if (waiters_.leader_ == this) waiters_.leader_ = nullptr;
      if (waiters_.leader_ == nullptr && waiters_.first_ != nullptr) waiters_.first_->call();
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // True when this thread leads, or does so from now on because nobody did.
    bool leads() {
      if (waiters_.leader_ == nullptr) waiters_.leader_ = this;
      return waiters_.leader_ == this;
    }

    // Sleeps until it is called or the deadline has passed. For followers.
    void follow(std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
      const auto called = [this] { return called_; };
      if (deadline.never()) {
        condition_.wait(lock, called);
      } else {
        condition_.wait_until(lock, deadline.time_point(), called);
      }
      called_ = false;
    }

    const For what;
    const std::uint64_t request;

   private:
    friend class Waiters;

    void call() {
      called_ = true;
      condition_.notify_one();
    }

    Waiters& waiters_;
    Waiter* next_;
    Waiter* previous_ = nullptr;
    bool called_ = false;
    std::condition_variable condition_;
  };

  // Calls each follower for whom `served(waiter)` is true. Returns whether the leader is such a
  // one: it sleeps in poll(), and the caller must wake it there.
  template <typename Served>
  bool call_if(const Served& served) {
    bool leader_is_served = false;
    for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next_) {
      if (!served(*waiter)) continue;
      if (waiter == leader_) {
        leader_is_served = true;
      } else {
        waiter->call();
      }
    }
    return leader_is_served;
  }

 private:
  Waiter* first_ = nullptr;
  Waiter* leader_ = nullptr;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_WAITERS_H_
