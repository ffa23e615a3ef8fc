#include "dataplane/host/interrupt_thread.h"

#include <cstdint>
#include <future>
#include <memory>
#include <rte_alarm.h>

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

}  // namespace gradcube::dataplane
