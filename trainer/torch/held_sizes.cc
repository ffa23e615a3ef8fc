#include "trainer/torch/held_sizes.h"

#include <mutex>
#include <unordered_map>

#include "trainer/torch/of_process.h"

namespace gradcube::pytorch {
namespace {

struct Calls {
  std::mutex mutex;
  std::unordered_map<c10::StorageImpl*, unsigned> of_storages;  // guarded by mutex
};

}  // namespace

void HeldSizes::hold(const c10::Storage& storage) {
  c10::StorageImpl* const one = storage.unsafeGetStorageImpl();
  Calls& calls = of_process<Calls>();
  const std::lock_guard<std::mutex> lock(calls.mutex);
  const auto found = calls.of_storages.find(one);
  if (found == calls.of_storages.end()) {
    // PyTorch resizes none without an allocator.
    if (!one->resizable() || one->allocator() == nullptr) return;
  }
  held_.push_back(storage);
  ++calls.of_storages[one];
  one->set_resizable(false);
}

void HeldSizes::release() {
  if (held_.empty()) return;
  Calls& calls = of_process<Calls>();
  {
    const std::lock_guard<std::mutex> lock(calls.mutex);
    for (const c10::Storage& storage : held_) {
      c10::StorageImpl* const one = storage.unsafeGetStorageImpl();
      const auto found = calls.of_storages.find(one);
      if (found != calls.of_storages.end()) {  // it is not in a forked child
        if (--found->second != 0) continue;
        calls.of_storages.erase(found);
      }
      // It has none where it was put into memory that other processes share.
      if (one->allocator() != nullptr) one->set_resizable(true);
    }
  }
  held_.clear();
}

}  // namespace gradcube::pytorch
