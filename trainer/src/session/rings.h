// The trainer's ends of the two rings in the shared region (shared_layout.h): producer of
// submissions, consumer of completions. Guarded by the session's mutex, but for
// CompletionRing::empty(), which any thread may call. Each end keeps its own copy of the word it
// writes and never reads it back.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_RINGS_H_
#define GRADCUBE_TRAINER_SRC_SESSION_RINGS_H_

#include <atomic>
#include <cstdint>

#include "trainer/shared_layout.h"

namespace gradcube::trainer {

class SubmissionRing {
 public:
  SubmissionRing(shared::RegionHeader& header, shared::Submission* entries)
      : header_(header), entries_(entries) {}

  // That the daemon has not yet read.
  std::uint64_t unread() const {
    return tail_ - header_.submission_head.load(std::memory_order_acquire);
  }

  // False when the daemon has not yet read kSubmissionEntries earlier ones.
  bool push(const shared::Submission& submission) {
    if (unread() >= shared::kSubmissionEntries) return false;
    entries_[tail_ % shared::kSubmissionEntries] = submission;
    // Sequentially consistent, as is the load in consumer_sleeps(): of a producer that publishes
    // and then looks whether the consumer sleeps, and a consumer that says so and then looks at the
    // ring, one must see the other.
    header_.submission_tail.store(++tail_, std::memory_order_seq_cst);
    return true;
  }

  bool consumer_sleeps() const {
    return header_.daemon_asleep.load(std::memory_order_seq_cst) != 0;
  }

 private:
  shared::RegionHeader& header_;
  shared::Submission* entries_;
  std::uint64_t tail_ = 0;
};

class CompletionRing {
 public:
  enum class Pop { entry, empty, corrupt };

  CompletionRing(shared::RegionHeader& header, const shared::Completion* entries)
      : header_(header), entries_(entries) {}

  // corrupt: the daemon claims more entries than the ring holds.
  Pop pop(shared::Completion& completion) {
    const std::uint64_t tail = header_.completion_tail.load(std::memory_order_acquire);
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (tail == head) return Pop::empty;
    if (tail - head > shared::kRingEntries) return Pop::corrupt;
    completion = entries_[head % shared::kRingEntries];
    head_.store(head + 1, std::memory_order_relaxed);
    header_.completion_head.store(head + 1, std::memory_order_release);
    return Pop::entry;
  }

  bool empty() const {
    return header_.completion_tail.load(std::memory_order_seq_cst) ==
           head_.load(std::memory_order_relaxed);
  }

  void set_consumer_sleeps(bool sleeps) {
    header_.trainer_asleep.store(sleeps ? 1 : 0, std::memory_order_seq_cst);
  }

 private:
  shared::RegionHeader& header_;
  const shared::Completion* entries_;
  std::atomic<std::uint64_t> head_{0};
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_RINGS_H_
