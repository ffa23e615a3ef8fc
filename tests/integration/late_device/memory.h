// The device's memory, as PyTorch's caching allocators give it: what is freed is used again on the
// stream that it was allocated for, as soon as that stream and those that were recorded get there.
// Here it is filled with 0xff then, so that who still reads it gets that.
#ifndef GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_MEMORY_H_
#define GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <array>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/integration/late_device/events.h"
#include "trainer/torch/compatibility.h"

namespace late_device {

inline thread_local c10::DeviceIndex current_device = 0;
inline thread_local std::array<c10::StreamId, kDevices> current_stream{};

inline c10::Stream current_stream_of(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, {kType, device},
                     current_stream[static_cast<std::size_t>(device)]);
}

struct Block {
  void* begin;
  std::size_t bytes;
  c10::Stream owner;
  std::mutex mutex = {};
  std::vector<c10::Stream> users = {};  // guarded by mutex
};

inline void free_later(void* context) {
  auto* const block_of = static_cast<Block*>(context);
  for (const c10::Stream& user : block_of->users) {
    const Event passed = std::make_shared<Counter>();
    record(passed, user);
    block(passed, block_of->owner);
  }
  queue_of(block_of->owner).push([block_of] {
    std::memset(block_of->begin, 0xff, block_of->bytes);
    std::free(block_of->begin);
    delete block_of;
  });
}

inline void record_use(const c10::DataPtr& data, const c10::Stream& stream) {
  if (data.get_deleter() != &free_later || data.get_context() == nullptr) return;
  auto* const block_of = static_cast<Block*>(data.get_context());
  if (stream == block_of->owner) return;
  const std::lock_guard<std::mutex> lock(block_of->mutex);
  block_of->users.push_back(stream);
}

class Memory final : public gradcube::pytorch::AllocatorBase {
 private:
  c10::DataPtr take(std::size_t bytes) const override {
    const c10::Device device(kType, current_device);
    if (bytes == 0) return {nullptr, nullptr, &free_later, device};
    void* const memory = std::malloc(bytes);
    return {memory, new Block{memory, bytes, current_stream_of(current_device)}, &free_later,
            device};
  }
};

inline Memory memory;

// The CPU's memory that copies need not wait for, by its beginning.
inline std::mutex registered_mutex;
inline std::map<std::uintptr_t, std::size_t> registered;

inline bool is_registered(const at::Tensor& tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
  const std::lock_guard<std::mutex> lock(registered_mutex);
  auto found = registered.upper_bound(begin);
  if (found == registered.begin()) return false;
  --found;
  return begin - found->first + tensor.nbytes() <= found->second;
}

inline int host_register(std::uintptr_t begin, std::size_t bytes, unsigned /*flags*/) {
  const std::lock_guard<std::mutex> lock(registered_mutex);
  registered[begin] = bytes;
  return 0;
}

inline int host_unregister(std::uintptr_t begin) {
  const std::lock_guard<std::mutex> lock(registered_mutex);
  return registered.erase(begin) == 1 ? 0 : 1;
}

}  // namespace late_device

#endif  // GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_MEMORY_H_
