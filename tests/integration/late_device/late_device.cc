// A device for tests of what happens on devices: PyTorch knows it by PrivateUse1, and every version
// from 1.13 on lets a test define it.
//
// Its memory is the process's. A stream is a thread that does one thing after the other, when it
// gets to it. hold() stops the caller's stream, and hold_arrivals() and hold_departures() the
// copies to the device and from it that may go on without the host, so that a test sees what waits
// for them. A copy that may go on without the host (non_blocking) does so only if the CPU's side of
// it is memory that cudaHostRegister() was told, as on CUDA; nothing but the caller keeps that
// memory alive, as there. All other operations are done by the CPU on copies.
//
// There are two devices, of which a test may take one for the wrong one. Threads: any.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <cstdint>
#include <memory>
#include <mutex>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>
#include <utility>

#include "tests/integration/late_device/copies.h"

namespace late_device {

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

namespace {

namespace py = pybind11;

// What PyTorch 1 calls c10::optional.
using OptionalType =
    decltype(c10::optTypeMetaToScalarType(std::declval<at::TensorOptions>().dtype_opt()));
using OptionalBool = decltype(std::declval<at::TensorOptions>().requires_grad_opt());
using OptionalLayout = decltype(std::declval<at::TensorOptions>().layout_opt());
using OptionalDevice = decltype(std::declval<at::TensorOptions>().device_opt());
using OptionalFormat = decltype(std::declval<at::TensorOptions>().memory_format_opt());

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

// Operators without derivatives, as those of c10d, have no kernel here. Some versions of PyTorch
// pass on to the next key by themselves; 1.13 and 2.6 do not, and none may be told so twice.
std::unique_ptr<torch::Library> pass_autograd_on() {
  constexpr auto kKey = c10::DispatchKey::AutogradPrivateUse1;
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kKey)) return nullptr;
  auto library =
      std::make_unique<torch::Library>(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFallthrough());
  return library;
}

const std::unique_ptr<torch::Library> autograd = pass_autograd_on();

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

}  // namespace

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &memory)

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::class_<Latch, std::shared_ptr<Latch>>(module, "Latch").def("open", &Latch::open);
  module.def("hold", &hold);
  module.def("hold_arrivals", [] { arrivals.hold(); });
  module.def("release_arrivals", [] { arrivals.release(); });
  module.def("hold_departures", [] { departures.hold(); });
  module.def("release_departures", [] { departures.release(); });
  module.def("is_idle", &is_idle);
  module.def("all_are_idle", &all_are_idle);
  module.def("fail_queries", [](int count) { failing_queries = count; });
  module.def("add_later", &add_later);
  module.def("cudaHostRegister", &host_register);
  module.def("cudaHostUnregister", &host_unregister);
  module.def("registered", [] {
    const std::lock_guard<std::mutex> lock(registered_mutex);
    return registered;
  });
}

}  // namespace late_device
