// A barrier that can be cancelled: when one of the threads fails, the others stop waiting for it.
#ifndef GRADCUBE_CLI_MEASURE_CANCELLABLE_BARRIER_H_
#define GRADCUBE_CLI_MEASURE_CANCELLABLE_BARRIER_H_

#include <atomic>

namespace gradcube::cli {

class CancellableBarrier {
 public:
  explicit CancellableBarrier(unsigned threads) : threads_(threads) {}

  // Returns true once all threads have arrived, false as soon as the barrier is cancelled. Writes
  // that a thread made before it arrived are visible to the others afterwards.
  bool arrive_and_wait() {
    const unsigned generation = generation_.load();
    // Asked after the generation is known: a cancellation before that is seen here, a later one
    // changes the generation.
    if (cancelled_.load()) return false;
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      generation_.fetch_add(1);
      generation_.notify_all();
    } else {
      generation_.wait(generation);
    }
    return !cancelled_.load();
  }

  void cancel() {
    cancelled_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
  }

  bool cancelled() const { return cancelled_.load(); }

 private:
  const unsigned threads_;
  std::atomic<unsigned> arrived_{0};
  std::atomic<unsigned> generation_{0};
  std::atomic<bool> cancelled_{false};
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_CANCELLABLE_BARRIER_H_
