// Memory that a call's requests use. It stays until they have ended, also where its storage is
// given other memory meanwhile: by resize_(), share_memory_() or the like.
//
// For that the storage's hold on its memory becomes one of several, of which the last frees it. So
// it is for memory of the CPU that an allocator or torch.from_numpy() has given. What processes
// share PyTorch does not move, and allocators of devices have to find their own holds.
//
// Threads: any.
#ifndef GRADCUBE_TRAINER_TORCH_HELD_MEMORY_H_
#define GRADCUBE_TRAINER_TORCH_HELD_MEMORY_H_

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <memory>

namespace gradcube::pytorch {

class HeldMemory {
 public:
  // Before an address in it is taken.
  explicit HeldMemory(const c10::Storage& storage);

  // The storage has other memory now.
  bool has_moved() const { return storage_.unsafeGetStorageImpl()->data() != begin_; }

 private:
  c10::Storage storage_;
  std::shared_ptr<c10::DataPtr> memory_;  // null: of the storage alone
  const void* begin_;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_HELD_MEMORY_H_
