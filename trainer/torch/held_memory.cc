#include "trainer/torch/held_memory.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <mutex>
#include <stdexcept>
#include <sys/types.h>
#include <unordered_map>
#include <utility>

#include "trainer/torch/compatibility.h"
#include "trainer/torch/memory.h"
#include "trainer/torch/of_process.h"

namespace gradcube::pytorch {
namespace {

using SharedMemory = std::shared_ptr<c10::DataPtr>;

struct Holds {
  struct OfStorage {
    unsigned count = 0;
    c10::Allocator* allocator = nullptr;  // its own
  };
  std::mutex mutex;  // held while storages are looked at and changed
  std::unordered_map<c10::StorageImpl*, OfStorage> of_storages;
};

class RefusingAllocator final : public AllocatorBase {
  c10::DataPtr take(std::size_t bytes) const override {
    // A forked child has its parent's storages, but none of its calls.
    if (process_number() != process_) return c10::GetCPUAllocator()->allocate(bytes);
    throw std::runtime_error(
        "a storage cannot be resized while a call uses it: call wait() before");
  }

  const pid_t process_ = process_number();
};

c10::Allocator* refusing() { return &of_process<RefusingAllocator>(); }

void let_go(void* context) { delete static_cast<SharedMemory*>(context); }

// How tensors over memory of others, such as NumPy's, let go of it.
c10::DeleterFnPtr deleter_of_others() {
  static const c10::DeleterFnPtr deleter = [] {
    char some = 0;
    const auto delete_nothing = [](void* /*memory*/) {};
    const at::Tensor over_it = at::from_blob(&some, {1}, delete_nothing, at::kByte);
    return over_it.storage().data_ptr().get_deleter();
  }();
  return deleter;
}

// Makes the storage's hold on its memory one of several.
SharedMemory shared_with(c10::StorageImpl& storage) {
  const c10::DataPtr& held = std::as_const(storage).data_ptr();
  const c10::DeleterFnPtr deleter = held.get_deleter();
  if (deleter == &let_go) return *static_cast<SharedMemory*>(held.get_context());
  const bool can_share = deleter == c10::GetDefaultCPUAllocator()->raw_deleter() ||
                         deleter == c10::GetCPUAllocator()->raw_deleter() ||
                         deleter == deleter_of_others() || is_of_sharing(deleter);
  if (!can_share || held.get_context() == nullptr) return nullptr;
  const auto memory = std::make_shared<c10::DataPtr>();
  auto context = std::make_unique<SharedMemory>(memory);
  void* const begin = held.get();
  *memory = storage.set_data_ptr({begin, context.release(), &let_go, held.device()});
  return memory;
}

// Until HeldMemory lets go. Returns the memory that stays; null: it cannot be shared.
SharedMemory hold(c10::StorageImpl& storage) {
  Holds& holds = of_process<Holds>();
  const std::lock_guard<std::mutex> lock(holds.mutex);
  SharedMemory memory = shared_with(storage);
  Holds::OfStorage& its = holds.of_storages[&storage];
  if (its.count++ == 0 && storage.allocator() != nullptr && storage.allocator() != refusing()) {
    its.allocator = storage.allocator();
    storage.set_allocator(refusing());
  }
  return memory;
}

}  // namespace

HeldMemory::HeldMemory(const c10::Storage& storage, bool is_result)
    : kept_{storage, hold(*storage.unsafeGetStorageImpl())},
      begin_(storage.unsafeGetStorageImpl()->data()),
      is_result_(is_result) {}

HeldMemory::~HeldMemory() {
  if (!kept_.storage) return;  // it was moved from
  c10::StorageImpl* const storage = kept_.storage.unsafeGetStorageImpl();
  Holds& holds = of_process<Holds>();
  const std::lock_guard<std::mutex> lock(holds.mutex);
  const auto found = holds.of_storages.find(storage);
  if (found == holds.of_storages.end() || --found->second.count != 0) return;
  // In memory that processes share it has none any more.
  if (storage->allocator() == refusing() && found->second.allocator != nullptr) {
    storage->set_allocator(found->second.allocator);
  }
  holds.of_storages.erase(found);
}

at::Tensor as_it_lies(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.has_storage()) return tensor.detach();
  at::Tensor alias =
      at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                    at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU));
  alias._set_conj(tensor.is_conj());
  alias._set_neg(tensor.is_neg());
  return alias;
}

}  // namespace gradcube::pytorch
