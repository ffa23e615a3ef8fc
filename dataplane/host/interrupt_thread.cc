#include "dataplane/host/interrupt_thread.h"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <pthread.h>
#include <rte_alarm.h>
#include <rte_interrupts.h>

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kSoon = 1;  // microseconds

// Of the interrupt thread, which is in set_value() when the caller may go on already.
struct Task {
  const std::function<void()>& work;
  std::promise<void> done;
};

void run(void* argument) {
  const std::unique_ptr<Task> task(static_cast<Task*>(argument));
  task->work();
  task->done.set_value();
}

}  // namespace

void run_on_interrupt_thread(const std::function<void()>& work) {
  std::unique_ptr<Task> task(new Task{work, {}});
  const std::future<void> done = task->done.get_future();
  if (rte_eal_alarm_set(kSoon, run, task.get()) != 0) {
    work();
    return;
  }
  (void)task.release();  // run() has it
  done.wait();
}

// It ends where it waits for interrupts: nothing else that it comes to is a place to be cancelled.
void stop_interrupt_thread() {
  std::optional<pthread_t> thread;
  run_on_interrupt_thread([&thread] {
    if (rte_thread_is_intr() != 0) thread = ::pthread_self();
  });
  if (!thread.has_value() || ::pthread_cancel(*thread) != 0) return;
  ::pthread_join(*thread, nullptr);
}

}  // namespace gradcube::dataplane
