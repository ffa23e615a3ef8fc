// Memory of the CPU through which tensors of a device pass, for a group and one device: blocks of
// the session's memory, so that the daemon works where the device's copies end. Where PyTorch gives
// the device's call that pins memory, they are pinned (interpreter.h): then no copy makes the host
// wait. Where the session has no memory, blocks are the process's own, and the library copies them.
//
// A device reads and writes a block after whoever has ordered that has gone on. So a block is given
// away with an event, and not used again before that has come to pass. Blocks are kept for the next
// call, as pinning takes long, up to kMostKept bytes that nobody uses. One that is larger by itself
// goes with the next block that is given back after its event. Where the device cannot be asked for
// a block's event, the block is not used again.
//
// Threads: any. Errors: std::bad_alloc.
#ifndef GRADCUBE_TRAINER_TORCH_STAGING_MEMORY_H_
#define GRADCUBE_TRAINER_TORCH_STAGING_MEMORY_H_

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "trainer/torch/session.h"

namespace gradcube::pytorch {

class StagingMemory : public std::enable_shared_from_this<StagingMemory> {
 public:
  struct Block {
    char* begin = nullptr;  // at a multiple of a page
    std::size_t bytes = 0;
    void* whole = nullptr;  // what begin lies in
    bool is_shared = false;
    bool is_pinned = false;
    // What the device has last been told to do with it; null: it was told nothing.
    std::shared_ptr<c10::Event> last;
  };
  // Given back when the last copy of the pointer goes.
  using BlockPointer = std::shared_ptr<Block>;

  StagingMemory(std::shared_ptr<Session> session, c10::Device device);
  // Waits for what devices still do, but not for long.
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  BlockPointer take(std::size_t bytes);

 private:
  using Owned = std::unique_ptr<Block>;

  Owned taken_from_kept(std::size_t bytes);
  Owned made(std::size_t bytes);
  void give_back(Owned block);
  void unmake(Block& block);

  const std::shared_ptr<Session> session_;
  const c10::Device device_;

  std::mutex mutex_;
  std::vector<Owned> kept_;  // guarded by mutex_; those given back last are at the end
};

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_STAGING_MEMORY_H_
