// Copies, which streams do when they get to them.
#ifndef GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_COPIES_H_
#define GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_COPIES_H_

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <memory>
#include <mutex>
#include <pybind11/pybind11.h>

#include "tests/integration/late_device/guard.h"

namespace late_device {

// On the stream of this thread.
inline Queue& current_queue(const at::Tensor& tensor) {
  return queue_of(Guard().getStream(tensor.device()));
}

// The same numbers, as the CPU sees them.
inline at::Tensor seen(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.dtype()));
}

// What copies between the device and pinned memory wait for.
class Holder {
 public:
  void hold() {
    const std::lock_guard<std::mutex> lock(mutex_);
    latch_ = std::make_shared<Latch>();
  }
  void release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    latch_->open();
    latch_ = nullptr;
  }
  std::shared_ptr<Latch> latch() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return latch_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Latch> latch_;  // null: nothing
};

inline Holder arrivals;    // of those to the device
inline Holder departures;  // of those from it

inline at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const at::Tensor& on_device = from.device().is_cpu() ? to : from;
  const at::Tensor& other = from.device().is_cpu() ? from : to;
  const bool waits = other.device().is_cpu() && !(non_blocking && is_registered(other));
  Queue& queue = current_queue(on_device);
  at::Tensor source;
  at::Tensor target;
  {
    const c10::InferenceMode as_values;
    const auto view = [](const at::Tensor& one) {
      // Not the tensor itself, which would keep its memory alive.
      at::Tensor same = at::from_blob(one.data_ptr(), one.sizes(), one.strides(),
                                      at::TensorOptions().dtype(one.dtype()));
      if (one.is_conj()) same = same.conj();
      return one.is_neg() ? same._neg_view() : same;
    };
    source = view(from);
    target = view(to);
  }
  std::shared_ptr<Latch> latch;
  if (!waits && other.device().is_cpu()) {
    latch = (from.device().is_cpu() ? arrivals : departures).latch();
  }
  queue.push([source, target, latch] {
    if (latch != nullptr) latch->pass();
    const c10::InferenceMode as_values;
    target.copy_(source);
  });
  if (waits) {
    const pybind11::gil_scoped_release* released =
        PyGILState_Check() ? new pybind11::gil_scoped_release : nullptr;
    queue.wait();
    delete released;
  }
  return to;
}

// Nothing is done on this thread's stream, of the tensor's device, until the latch is opened.
inline std::shared_ptr<Latch> hold(const at::Tensor& tensor) {
  const auto latch = std::make_shared<Latch>();
  current_queue(tensor).push([latch] { latch->pass(); });
  return latch;
}

inline bool is_idle(const at::Tensor& tensor) { return current_queue(tensor).is_idle(); }

// As a kernel would, on this thread's stream.
inline void add_later(const at::Tensor& tensor, double number) {
  const c10::InferenceMode as_values;
  current_queue(tensor).push([whole = tensor, there = seen(tensor), number] {
    const c10::InferenceMode as_values_there;
    there.add_(number);
  });
}

}  // namespace late_device

#endif  // GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_COPIES_H_
