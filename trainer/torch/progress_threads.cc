// The threads of Progress: how they begin, take turns, tell ends, and stop.

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <stdexcept>
#include <utility>

#include "trainer/torch/interpreter.h"
#include "trainer/torch/late_memory.h"
#include "trainer/torch/of_process.h"
#include "trainer/torch/progress.h"

namespace gradcube::pytorch {
namespace {

thread_local const Progress* led = nullptr;  // whose progress thread this is

// Signals are for the program's own threads: they end the calls that those sleep in.
sigset_t all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  return all;
}

// These are blocked on this thread, in a scope.
class Blocking {
 public:
  explicit Blocking(const sigset_t& signals) { ::pthread_sigmask(SIG_SETMASK, &signals, &before_); }
  ~Blocking() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace

std::shared_ptr<Progress> Progress::start(std::shared_ptr<Session> session) {
  std::shared_ptr<Progress> progress(new Progress(std::move(session)));
  const Blocking scope(all_signals());
  progress->starters_signals_ = scope.before();
  const std::lock_guard<std::mutex> lock(progress->mutex_);
  // The thread owns it as well: a task's end may run the group's destructor on this thread.
  progress->thread_ = std::thread([progress] { progress->run(); });
  return progress;
}

void Progress::hand_over() {
  if (led != this) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (at_exit_) return;  // nothing ends any more
  join_retired();
  const Blocking scope(all_signals());
  std::thread next;
  try {
    // Also while the group stops: what this one waits for may be told after what it has in hand.
    next = std::thread([progress = shared_from_this()] { progress->run(); });
  } catch (const std::exception& error) {
    lock.unlock();
    lose_order(error.what());
    session_->leave();  // what is waited for may be read and written, and the caller goes on
    throw;
  }
  if (is_detached_) {
    next.detach();
  } else {
    if (thread_.joinable()) former_.push_back(std::move(thread_));
    thread_ = std::move(next);
  }
  led = nullptr;
}

void Progress::join_retired() {
  for (const std::thread::id retired : std::exchange(retired_, {})) {
    const auto is_it = [retired](const std::thread& one) { return one.get_id() == retired; };
    const auto one = std::find_if(former_.begin(), former_.end(), is_it);
    if (one == former_.end()) continue;  // stop() joins it
    one->join();
    former_.erase(one);
  }
}

void Progress::stop() {
  if (!session_->is_own()) {
    // The child has no such threads to join or detach, and another may have held the mutexes at the
    // fork. The handles are given up.
    if (thread_.joinable()) new std::thread(std::move(thread_));
    new std::vector<std::thread>(std::move(former_));
    return;
  }
  {
    const std::lock_guard<std::mutex> order(order_);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  wake();
  while (true) {
    std::vector<std::thread> threads;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      threads.swap(former_);
      if (thread_.joinable()) threads.push_back(std::move(thread_));
      // One of them cannot wait for itself, nor for those that wait for what it has yet to fail.
      is_detached_ = std::any_of(threads.begin(), threads.end(), [](const std::thread& one) {
        return one.get_id() == std::this_thread::get_id();
      });
    }
    for (std::thread& thread : threads) is_detached_ ? thread.detach() : thread.join();
    if (threads.empty() || is_detached_) return;
  }
}

void Progress::stop_at_exit() {
  if (!session_->is_own()) return stop();
  std::unique_lock<std::mutex> order(order_);
  std::unique_lock<std::mutex> lock(mutex_);
  if (std::exchange(stopping_, true)) return;
  at_exit_ = true;
  // Some may wait in what `ended` runs.
  for (std::thread& former : former_) former.detach();
  former_.clear();
  thread_.detach();
  order.unlock();
  wake();
  left_.wait_for(lock, std::chrono::seconds(3), [this] { return has_left_; });
}

void Progress::check_exit() {
  if (!at_exit_ || !is_awaited_at_exit()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_left_) throw std::runtime_error(kStopped);
}

bool Progress::has_stopped() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

void Progress::run() {
  ::pthread_setname_np(::pthread_self(), "gc-progress");
  led = this;
  while (take_arrivals()) {
    look_for_ends();
    if (may_tell() && !tell_endings()) return retire();
    look_for_timeouts();
    withdraw_failing();
    start_waiting();
    if (may_tell() && !tell_endings()) return retire();
    sleep();
  }
  fail_all();
}

// False: this thread is the progress thread no more, and the next one tells the rest.
bool Progress::tell_endings() {
  if (endings_.empty()) return true;
  // A process that this starts, in a callback, would inherit that signals are blocked.
  const Blocking scope(starters_signals_);
  while (!endings_.empty()) {
    const Ending ending = std::move(endings_.front());
    endings_.pop_front();
    ending.task->ended_(ending.failure);
    if (led != this) return false;
  }
  return true;
}

// A caller that is told may write to memory that others are given, until the job was left.
bool Progress::may_tell() {
  let_go_of_memory();
  const std::lock_guard<std::mutex> lock(mutex_);
  return ruin_.empty();
}

void Progress::retire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  retired_.push_back(std::this_thread::get_id());
}

void Progress::fail_all() {
  session_->leave();
  std::string why = kStopped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ruin_.empty()) why = ruin_;
    has_left_ = true;
    left_.notify_all();
    if (at_exit_) return;
  }
  of_process<LateMemory>().remove_all_of(this);
  std::array<std::deque<Waiting>, kKinds> waiting;
  {
    const std::lock_guard<std::mutex> order(order_);
    waiting.swap(waiting_);
  }
  take_arrivals();
  for (const Flight& flight : flights_) add_ending(flight.task, why);
  for (const std::deque<Waiting>& each : waiting) {
    for (const Waiting& one : each) add_ending(one.task, why);
  }
  flights_.clear();
  failing_.clear();
  tell_endings();
}

}  // namespace gradcube::pytorch
