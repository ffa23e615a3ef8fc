// A device for tests of what happens on devices: PyTorch knows it by PrivateUse1, and every version
// from 1.13 on lets a test define it.
//
// Its memory is the process's. A stream is a thread that does one thing after the other, when it
// gets to it. hold() stops the caller's stream, and hold_arrivals() the copies to the device that
// may go on without the host, so that a test sees what waits for them. A copy that may go on
// without the host (non_blocking) does so only if the CPU's side of it is memory that
// cudaHostRegister() was told, as on CUDA; nothing but the caller keeps that memory alive, as
// there. All other operations are done by the CPU on copies.
//
// There are two devices, of which a test may take one for the wrong one. Threads: any.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <array>
#include <atomic>
#include <c10/core/Allocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <thread>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <utility>

#include "trainer/torch/compatibility.h"

#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

namespace {

namespace py = pybind11;

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr int kDevices = 2;
constexpr int kStreams = 8;  // of each device; the first one is the default

// What PyTorch 1 calls c10::optional.
using OptionalType =
    decltype(c10::optTypeMetaToScalarType(std::declval<at::TensorOptions>().dtype_opt()));
using OptionalBool = decltype(std::declval<at::TensorOptions>().requires_grad_opt());
using OptionalLayout = decltype(std::declval<at::TensorOptions>().layout_opt());
using OptionalDevice = decltype(std::declval<at::TensorOptions>().device_opt());
using OptionalFormat = decltype(std::declval<at::TensorOptions>().memory_format_opt());

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

Queue& queue_of(const c10::Stream& stream) {
  static auto* const queues = new std::array<Queue, kDevices * kStreams>;
  return (*queues)[static_cast<std::size_t>(stream.device_index() * kStreams + stream.id())];
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

class Counter {
 public:
  std::uint64_t next() { return ++asked_; }
  void reach(std::uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reached_ = std::max(reached_, number);
    changed_.notify_all();
  }
  void wait(std::uint64_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, number] { return reached_ >= number; });
  }
  bool is_at(std::uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reached_ >= number;
  }
  std::uint64_t asked() const { return asked_; }

 private:
  std::atomic<std::uint64_t> asked_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reached_ = 0;
};

using Event = std::shared_ptr<Counter>;

thread_local c10::DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, kDevices> current_stream{};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kType, std::exchange(current_device, device.index())};
  }
  c10::Device getDevice() const override { return {kType, current_device}; }
  void setDevice(c10::Device device) const override { current_device = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, whole(device), current_stream[place(device)]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, whole(device));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    static std::atomic<unsigned> given{0};
    return c10::Stream(c10::Stream::UNSAFE, whole(device),
                       static_cast<c10::StreamId>(1 + given++ % (kStreams - 1)));
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::Stream before = getStream(stream.device());
    current_stream[place(stream.device())] = stream.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*device*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event(std::make_shared<Counter>());
    const Event counter = *static_cast<Event*>(*event);
    queue_of(stream).push([counter, number = counter->next()] { counter->reach(number); });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const Event counter = *static_cast<Event*>(event);
    queue_of(stream).push([counter, number = counter->asked()] { counter->wait(number); });
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    const Event& counter = *static_cast<Event*>(event);
    return counter->is_at(counter->asked());
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override { return queue_of(stream).is_idle(); }
  void synchronizeStream(const c10::Stream& stream) const override { queue_of(stream).wait(); }

 private:
  static c10::Device whole(c10::Device device) {
    return {kType, device.has_index() ? device.index() : current_device};
  }
  static std::size_t place(c10::Device device) {
    return static_cast<std::size_t>(whole(device).index());
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

#if TORCH_VERSION_MAJOR >= 2
// What later versions ask of a device beside its guard. Some of the calls are not in all of them.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  c10::DeviceIndex deviceCount() const { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const { return current_device; }
  void setCurrentDevice(c10::DeviceIndex device) const { current_device = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const {
    return std::exchange(current_device, device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const {
    return device < 0 ? current_device : exchangeDevice(device);
  }
};

[[maybe_unused]] const bool has_hooks = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();
#endif

class Memory final : public gradcube::pytorch::AllocatorBase {
 public:
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }

 private:
  c10::DataPtr take(std::size_t bytes) const override {
    void* const memory = bytes == 0 ? nullptr : std::malloc(bytes);
    return {memory, memory, &std::free, c10::Device(kType, current_device)};
  }
};

Memory memory;

// The CPU's memory that copies need not wait for, by its beginning.
std::mutex registered_mutex;
std::map<std::uintptr_t, std::size_t> registered;

bool is_registered(const at::Tensor& tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
  const std::lock_guard<std::mutex> lock(registered_mutex);
  auto found = registered.upper_bound(begin);
  if (found == registered.begin()) return false;
  --found;
  return begin - found->first + tensor.nbytes() <= found->second;
}

// On the stream of this thread.
Queue& current_queue(const at::Tensor& tensor) {
  return queue_of(Guard().getStream(tensor.device()));
}

// The same numbers, as the CPU sees them.
at::Tensor seen(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.dtype()));
}

class InDevice {
 public:
  InDevice(OptionalDevice device) : before_(current_device) {
    if (device.has_value() && device->has_index()) current_device = device->index();
  }
  ~InDevice() { current_device = before_; }

 private:
  const c10::DeviceIndex before_;
};

at::Tensor empty(c10::IntArrayRef size, OptionalType type, OptionalLayout, OptionalDevice device,
                 OptionalBool, OptionalFormat format) {
  const InDevice there(device);
  return at::detail::empty_generic(size, &memory,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, OptionalType type,
                         OptionalLayout, OptionalDevice device, OptionalBool) {
  const InDevice there(device);
  return at::detail::empty_strided_generic(size, stride, &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(type));
}

// What copies to the device wait for; null: nothing.
std::mutex arrivals_mutex;
std::shared_ptr<Latch> held_arrivals;

std::shared_ptr<Latch> arrivals() {
  const std::lock_guard<std::mutex> lock(arrivals_mutex);
  return held_arrivals;
}

void hold_arrivals() {
  const std::lock_guard<std::mutex> lock(arrivals_mutex);
  held_arrivals = std::make_shared<Latch>();
}

void release_arrivals() {
  const std::lock_guard<std::mutex> lock(arrivals_mutex);
  held_arrivals->open();
  held_arrivals = nullptr;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
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
  // A device's memory is kept by PyTorch's allocator, of which this one has none.
  const auto kept = std::make_pair(from.device().is_cpu() ? at::Tensor() : from,
                                   to.device().is_cpu() ? at::Tensor() : to);
  const std::shared_ptr<Latch> latch = waits || !from.device().is_cpu() ? nullptr : arrivals();
  queue.push([source, target, kept, latch] {
    if (latch != nullptr) latch->pass();
    const c10::InferenceMode as_values;
    target.copy_(source);
  });
  if (waits) {
    const py::gil_scoped_release* released =
        PyGILState_Check() ? new py::gil_scoped_release : nullptr;
    queue.wait();
    delete released;
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  const_cast<at::Tensor&>(to).resize_(from.sizes());
  return copy_from(from, to, false);
}

const at::Tensor& resize(const at::Tensor& tensor, c10::IntArrayRef size, OptionalFormat) {
  at::TensorImpl* const whole = tensor.unsafeGetTensorImpl();
  whole->set_sizes_contiguous(size);
  const std::size_t bytes = tensor.nbytes();
  if (bytes > tensor.storage().nbytes()) {
    const InDevice there(tensor.device());
    at::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(memory.allocate(bytes));
    storage->set_nbytes(bytes);
  }
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage, std::int64_t offset,
                        c10::IntArrayRef size, c10::IntArrayRef stride) {
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return tensor;
}

void by_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_cpu>());
}

#if TORCH_VERSION_MAJOR < 2
// Later versions do so themselves: operators without derivatives, as those of c10d, have no kernel.
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
#endif

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view",
         static_cast<at::Tensor (*)(const at::Tensor&, c10::IntArrayRef)>(&at::native::view));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
}

// Nothing is done on this thread's stream, of the tensor's device, until the latch is opened.
std::shared_ptr<Latch> hold(const at::Tensor& tensor) {
  const auto latch = std::make_shared<Latch>();
  current_queue(tensor).push([latch] { latch->pass(); });
  return latch;
}

// As a kernel would, on this thread's stream.
void add_later(const at::Tensor& tensor, double number) {
  const c10::InferenceMode as_values;
  current_queue(tensor).push([whole = tensor, there = seen(tensor), number] {
    const c10::InferenceMode as_values_there;
    there.add_(number);
  });
}

int host_register(std::uintptr_t begin, std::size_t bytes, unsigned /*flags*/) {
  const std::lock_guard<std::mutex> lock(registered_mutex);
  registered[begin] = bytes;
  return 0;
}

int host_unregister(std::uintptr_t begin) {
  const std::lock_guard<std::mutex> lock(registered_mutex);
  return registered.erase(begin) == 1 ? 0 : 1;
}

}  // namespace

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &memory)

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::class_<Latch, std::shared_ptr<Latch>>(module, "Latch").def("open", &Latch::open);
  module.def("hold", &hold);
  module.def("hold_arrivals", &hold_arrivals);
  module.def("release_arrivals", &release_arrivals);
  module.def("add_later", &add_later);
  module.def("cudaHostRegister", &host_register);
  module.def("cudaHostUnregister", &host_unregister);
  module.def("registered", [] {
    const std::lock_guard<std::mutex> lock(registered_mutex);
    return registered;
  });
}
