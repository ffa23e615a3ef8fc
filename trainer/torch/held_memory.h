// Memory of tensors that a call uses. Until the call has ended PyTorch gives their storages no
// other memory: resize_() throws.
//
// That asks a storage's allocator for the other memory, so in the place of that stands one that
// refuses. To resize to nothing asks nobody, nor does share_memory_(): so that the memory stays all
// the same, a storage's hold on it becomes one of several, of which the last frees it. So it is for
// what an allocator for the CPU, ours or torch.from_numpy() has given. Pinned memory and that of
// devices, whose allocators look at how it is held, is the caller's to keep.
//
// Threads: it is made on the thread that makes the call, whose tensors no other thread may change
// meanwhile; it may end on any. In a forked child storages of its parent's calls can be resized.
#ifndef GRADCUBE_TRAINER_TORCH_HELD_MEMORY_H_
#define GRADCUBE_TRAINER_TORCH_HELD_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <memory>

namespace gradcube::pytorch {

// What stays, also when resize_() may give the storage other memory again.
struct KeptMemory {
  c10::Storage storage;
  std::shared_ptr<c10::DataPtr> memory;  // null: of the storage alone
};

class HeldMemory {
 public:
  // Before an address in it is taken. `is_result`: the call writes to it.
  HeldMemory(const c10::Storage& storage, bool is_result);
  HeldMemory(HeldMemory&& other) noexcept = default;
  HeldMemory& operator=(HeldMemory&&) = delete;
  ~HeldMemory();

  // Its call writes there, but on this rank no result.
  void expect_no_result() { is_result_ = false; }

  const KeptMemory& kept() const { return kept_; }

  // It has a result, and the storage has other memory now.
  bool has_lost_result() const {
    return is_result_ && kept_.storage.unsafeGetStorageImpl()->data() != begin_;
  }

 private:
  KeptMemory kept_;
  const void* begin_;
  bool is_result_;
};

// The tensor's elements where they lie now, for as long as that is held: what becomes of its
// storage does not matter then. Of a device's tensor the tensor itself, without its history.
at::Tensor as_it_lies(const at::Tensor& tensor);

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_HELD_MEMORY_H_
