// What streams do, and what stops them.
#ifndef GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_STREAMS_H_
#define GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_STREAMS_H_

#include <algorithm>
#include <array>
#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace late_device {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr int kDevices = 2;
constexpr int kStreams = 8;  // of each device; the first one is the default

// Never ends, as PyTorch may use streams when the process ends.
class Queue {
 public:
  Queue() {
    std::thread([this] { run(); }).detach();
  }

  void push(std::function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }

  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return tasks_.empty();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
  }

 private:
  [[noreturn]] void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // the first one is being done
};

using Queues = std::array<Queue, kDevices * kStreams>;

inline Queues& queues() {
  static auto* const all = new Queues;
  return *all;
}

inline Queue& queue_of(const c10::Stream& stream) {
  return queues()[static_cast<std::size_t>(stream.device_index() * kStreams + stream.id())];
}

inline bool all_are_idle() {
  return std::all_of(queues().begin(), queues().end(),
                     [](Queue& queue) { return queue.is_idle(); });
}

// Closed, until a test opens it.
class Latch {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

}  // namespace late_device

#endif  // GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_STREAMS_H_
