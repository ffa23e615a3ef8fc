#include "trainer/torch/held_memory.h"

#include <ATen/ATen.h>
#include <mutex>
#include <utility>

#include "trainer/torch/of_process.h"

namespace gradcube::pytorch {
namespace {

using SharedMemory = std::shared_ptr<c10::DataPtr>;

void let_go(void* context) { delete static_cast<SharedMemory*>(context); }

struct Holds {
  std::mutex mutex;  // held while a storage's hold is looked at and changed
};

// How tensors over memory of others, such as NumPy's, let go of it.
c10::DeleterFnPtr deleter_of_others() {
  static char some = 0;
  static const c10::DeleterFnPtr deleter = at::from_blob(
                                               &some, {1}, [](void* /*memory*/) {}, at::kByte)
                                               .storage()
                                               .data_ptr()
                                               .get_deleter();
  return deleter;
}

bool can_share(const c10::StorageImpl& storage) {
  const c10::DataPtr& held = storage.data_ptr();
  return held.device().is_cpu() && held.get_context() != nullptr &&
         (storage.allocator() != nullptr || held.get_deleter() == deleter_of_others());
}

SharedMemory shared_with(c10::StorageImpl& storage) {
  const std::lock_guard<std::mutex> lock(of_process<Holds>().mutex);
  const c10::DataPtr& held = std::as_const(storage).data_ptr();
  if (held.get_deleter() == &let_go) return *static_cast<SharedMemory*>(held.get_context());
  if (!can_share(storage)) return nullptr;
  const auto memory = std::make_shared<c10::DataPtr>();
  auto context = std::make_unique<SharedMemory>(memory);
  void* const begin = held.get();
  *memory = storage.set_data_ptr({begin, context.release(), &let_go, held.device()});
  return memory;
}

}  // namespace

HeldMemory::HeldMemory(const c10::Storage& storage)
    : storage_(storage),
      memory_(shared_with(*storage.unsafeGetStorageImpl())),
      begin_(storage.unsafeGetStorageImpl()->data()) {}

}  // namespace gradcube::pytorch
