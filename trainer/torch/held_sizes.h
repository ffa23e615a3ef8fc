// Storages that may not be resized while calls read them or write to them: another size may lie
// elsewhere, and PyTorch would free what the requests use.
//
// PyTorch refuses to resize a storage that says of itself that it is not resizable. Of several
// calls on one the last one lets go. Whoever holds one has the storage itself, so no other comes to
// lie at its address.
//
// Threads: a work's own storages are held before its requests are submitted, and let go of once, by
// its end.
#ifndef GRADCUBE_TRAINER_TORCH_HELD_SIZES_H_
#define GRADCUBE_TRAINER_TORCH_HELD_SIZES_H_

#include <c10/core/Storage.h>
#include <vector>

namespace gradcube::pytorch {

class HeldSizes {
 public:
  HeldSizes() = default;
  ~HeldSizes() { release(); }
  HeldSizes(const HeldSizes&) = delete;
  HeldSizes& operator=(const HeldSizes&) = delete;

  void hold(const c10::Storage& storage);
  void release();

 private:
  std::vector<c10::Storage> held_;
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_HELD_SIZES_H_
