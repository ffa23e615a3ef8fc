// What PyTorch asks of a device.
#ifndef GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_GUARD_H_
#define GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_GUARD_H_

#include <array>
#include <atomic>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <memory>
#include <stdexcept>
#include <torch/version.h>
#include <utility>

#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include "tests/integration/late_device/memory.h"

namespace late_device {

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
    late_device::record(counter, stream);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    late_device::block(*static_cast<Event*>(event), stream);
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    if (take_failing_query()) throw std::runtime_error("the device cannot be asked");
    const Event& counter = *static_cast<Event*>(event);
    return counter->is_at(counter->asked());
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    record_use(data, stream);
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

[[maybe_unused]] inline const bool has_hooks = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();
#endif

}  // namespace late_device

#endif  // GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_GUARD_H_
