#include "trainer/torch/staging_memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "trainer/torch/interpreter.h"

namespace gradcube::pytorch {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLeastBlock = std::size_t{1} << 16;
constexpr std::size_t kMostKept = std::size_t{1} << 28;

// Of few sizes, so that what is kept fits what comes.
std::size_t size_of_block(std::size_t bytes) {
  std::size_t size = kLeastBlock;
  while (size < bytes) size *= 2;
  return size;
}

// Not of a device that cannot say it: it may still read and write.
bool has_passed(const StagingMemory::Block& block) {
  try {
    return block.last == nullptr || block.last->query();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

StagingMemory::StagingMemory(std::shared_ptr<Session> session, c10::Device device)
    : session_(std::move(session)), device_(device) {}

StagingMemory::~StagingMemory() {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (Owned& block : kept_) {
    while (!has_passed(*block) && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    // Of a device that hangs, the block is given up.
    if (has_passed(*block)) unmake(*block);
  }
}

StagingMemory::BlockPointer StagingMemory::take(std::size_t bytes) {
  const std::size_t size = size_of_block(bytes);
  Owned block = taken_from_kept(size);
  if (block == nullptr) block = made(size);
  return {block.release(),
          [memory = shared_from_this()](Block* one) { memory->give_back(Owned(one)); }};
}

StagingMemory::Owned StagingMemory::taken_from_kept(std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto fits = [bytes](const Owned& block) {
    return block->bytes == bytes && has_passed(*block);
  };
  const auto found = std::find_if(kept_.begin(), kept_.end(), fits);
  if (found == kept_.end()) return nullptr;
  Owned block = std::move(*found);
  kept_.erase(found);
  block->last = nullptr;
  return block;
}

StagingMemory::Owned StagingMemory::made(std::size_t bytes) {
  auto block = std::make_unique<Block>();
  block->bytes = bytes;
  if (session_ != nullptr) block->whole = session_->allocate(bytes + kPage);
  block->is_shared = block->whole != nullptr;
  if (!block->is_shared) block->whole = std::malloc(bytes + kPage);
  if (block->whole == nullptr) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(block->whole);
  block->begin = static_cast<char*>(block->whole) + (kPage - address % kPage) % kPage;
  // Whole pages, none of which another block has as well.
  block->is_pinned = pin_memory(device_.str(), block->begin, bytes);
  return block;
}

void StagingMemory::give_back(Owned block) {
  std::vector<Owned> surplus;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.push_back(std::move(block));
    // One that is too large by itself takes no other's place.
    const auto may_stay = [](const Owned& one) { return one->bytes <= kMostKept; };
    std::size_t bytes = 0;
    for (const Owned& one : kept_) bytes += may_stay(one) ? one->bytes : 0;
    for (auto one = kept_.begin(); one != kept_.end();) {
      if ((may_stay(*one) && bytes <= kMostKept) || !has_passed(**one)) {
        ++one;
        continue;
      }
      if (may_stay(*one)) bytes -= (*one)->bytes;
      surplus.push_back(std::move(*one));
      one = kept_.erase(one);
    }
  }
  for (const Owned& one : surplus) unmake(*one);
}

void StagingMemory::unmake(Block& block) {
  if (block.is_pinned) unpin_memory(device_.str(), block.begin);
  if (block.is_shared) {
    session_->release(block.whole);
  } else {
    std::free(block.whole);
  }
}

}  // namespace gradcube::pytorch
