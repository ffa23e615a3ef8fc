#include "trainer/torch/memory.h"

#include <algorithm>
#include <c10/core/CPUAllocator.h>
#include <cstring>
#include <utility>

#include "trainer/torch/compatibility.h"

namespace gradcube::pytorch {

// One block of the session's for tensors of a scope, which gets it with the first of them. The
// scope's thread alone takes from it; any thread may let go of a tensor.
class SideBySide {
 public:
  SideBySide(std::shared_ptr<Session> session, std::size_t bytes)
      : session_(std::move(session)), bytes_(bytes) {}
  ~SideBySide() {
    if (memory_ != nullptr) session_->release(memory_);
  }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  // Null if there is no room.
  void* take(std::size_t bytes) {
    if (bytes > bytes_ - taken_ || !has_memory()) return nullptr;
    return memory_ + std::exchange(taken_, std::min(bytes_, taken_ + Session::aligned(bytes)));
  }

 private:
  bool has_memory() {
    if (memory_ == nullptr) {
      memory_ = static_cast<char*>(session_->allocate(bytes_));
      // What is between tensors is combined with them.
      if (memory_ != nullptr) std::memset(memory_, 0, bytes_);
    }
    return memory_ != nullptr;
  }

  const std::shared_ptr<Session> session_;
  const std::size_t bytes_;
  std::size_t taken_ = 0;
  char* memory_ = nullptr;
};

namespace {

thread_local std::shared_ptr<Session> sharing_session;
thread_local std::shared_ptr<SideBySide> sharing_block;

struct Block {
  std::shared_ptr<Session> session;
  void* memory;
};

void delete_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  block->session->release(block->memory);
}

void delete_part(void* context) { delete static_cast<std::shared_ptr<SideBySide>*>(context); }

class SharingAllocator final : public AllocatorBase {
 public:
  explicit SharingAllocator(c10::Allocator* others) : others_(others) {}

  // Of what is allocated outside scopes. PyTorch's raw_allocate() refuses a block of ours, whose
  // context is another pointer than its memory.
  c10::DeleterFnPtr raw_deleter() const override { return others_->raw_deleter(); }

 private:
  c10::DataPtr take(std::size_t bytes) const override {
    if (sharing_block != nullptr && bytes != 0) {
      if (void* memory = sharing_block->take(bytes); memory != nullptr) {
        return {memory, new std::shared_ptr<SideBySide>(sharing_block), &delete_part,
                c10::Device(c10::DeviceType::CPU)};
      }
    }
    if (sharing_session != nullptr && bytes != 0) {
      if (void* memory = sharing_session->allocate(bytes); memory != nullptr) {
        return {memory, new Block{sharing_session, memory}, &delete_block,
                c10::Device(c10::DeviceType::CPU)};
      }
    }
    return others_->allocate(bytes);
  }

  c10::Allocator* const others_;
};

// For good: storages keep the pointer to the allocator that they came from.
void install_allocator() {
  constexpr std::uint8_t kHighestPriority = 255;
  static const bool done = [] {
    c10::SetCPUAllocator(new SharingAllocator(c10::GetCPUAllocator()), kHighestPriority);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

bool is_of_sharing(c10::DeleterFnPtr deleter) {
  return deleter == &delete_block || deleter == &delete_part;
}

Sharing::Sharing(std::shared_ptr<Session> session, std::size_t side_by_side)
    : outer_session_(std::exchange(sharing_session, std::move(session))),
      outer_block_(std::exchange(sharing_block, nullptr)) {
  install_allocator();
  if (sharing_session != nullptr && side_by_side != 0) {
    sharing_block = std::make_shared<SideBySide>(sharing_session, side_by_side);
  }
}

Sharing::~Sharing() {
  sharing_session = std::move(outer_session_);
  sharing_block = std::move(outer_block_);
}

}  // namespace gradcube::pytorch
