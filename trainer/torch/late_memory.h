// What abandoned calls may still write to (progress.h), of all groups of this process: what one of
// them is to read or write may be a tensor that another one's call writes to.
//
// It has the calls, and so their tensors: no other tensor gets this memory.
//
// Threads: any.
#ifndef GRADCUBE_TRAINER_TORCH_LATE_MEMORY_H_
#define GRADCUBE_TRAINER_TORCH_LATE_MEMORY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {

class LateMemory {
 public:
  void add(const void* group, std::shared_ptr<void> call, std::vector<Span> spans);
  void remove(const void* call);
  void remove_all_of(const void* group);
  // Whether one of these shares a byte with what may be written to.
  bool has(const std::vector<Span>& touched);

 private:
  struct Late {
    const void* group = nullptr;
    std::shared_ptr<void> call;
    std::vector<Span> spans;
  };

  void remove_if(const std::function<bool(const Late&)>& is_it);

  std::atomic<bool> some_are_late_{false};  // each call asks, and hardly ever finds one

  std::mutex mutex_;  // guards all below
  std::vector<Late> late_;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_LATE_MEMORY_H_
