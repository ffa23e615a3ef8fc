// Tensors in the memory that a session shares with its daemon: collectives on them copy nothing.
//
// A Sharing scope makes all CPU tensors that its thread allocates while it lives come from a
// session's heap. DistributedDataParallel's buckets are allocated so (gradcube/torch.py). The first
// scope replaces PyTorch's CPU allocator, for the process, by one that asks whether the thread is
// in a scope, and leaves all else to the allocator that was there.
//
// Not every tensor is taken, as a large one might be: a fork copies what lies in shared memory,
// because a child that writes to a tensor, as the workers of a DataLoader may, must not change its
// parent's.
//
// A scope can be told how many bytes to keep side by side: with the first tensor it takes them from
// the session as one block, all zeros, and what is allocated in the scope lies in it, one after the
// other, each at a multiple of 64 bytes, as long as there is room. So one collective can do several
// tensors where they lie. The block is free when all of them are gone.
//
// Where the session has no memory, tensors are allocated as ever, and staged. A tensor keeps the
// session's memory mapped as long as it lives.
#ifndef GRADCUBE_TRAINER_TORCH_MEMORY_H_
#define GRADCUBE_TRAINER_TORCH_MEMORY_H_

#include <c10/core/Allocator.h>
#include <cstddef>
#include <memory>

#include "trainer/torch/session.h"

namespace gradcube::pytorch {

class SideBySide;

// Scopes of a thread nest; each ends on the thread that it began on.
class Sharing {
 public:
  // `side_by_side`: bytes; 0: each tensor is a block of its own. A null session shares nothing.
  explicit Sharing(std::shared_ptr<Session> session, std::size_t side_by_side = 0);
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

 private:
  std::shared_ptr<Session> outer_session_;
  std::shared_ptr<SideBySide> outer_block_;
};

// Whether it lets go of memory that was allocated in such a scope.
bool is_of_sharing(c10::DeleterFnPtr deleter);

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_MEMORY_H_
