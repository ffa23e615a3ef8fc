#include "trainer/torch/stage.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "trainer/torch/interpreter.h"

namespace gradcube::pytorch {
namespace {

using c10::impl::VirtualGuardImpl;

// How often the device is asked.
constexpr std::chrono::microseconds kLook(20);

c10::Stream new_stream(c10::Device device) {
  try {
    return VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  } catch (const std::exception& error) {
    // Of a device that has streams it is this one that fails.
    if (std::string_view(error.what()).find("doesn't support") == std::string_view::npos) throw;
    throw unsupported_device(device);
  }
}

std::shared_ptr<c10::Event> recorded(const c10::Stream& stream) {
  auto event = std::make_shared<c10::Event>(stream.device_type());
  event->record(stream);
  return event;
}

}  // namespace

DeviceLink::DeviceLink(std::shared_ptr<Session> session, c10::Device asked)
    : device(asked),
      there(new_stream(device)),
      back(new_stream(device)),
      memory(std::make_shared<StagingMemory>(std::move(session), device)) {}

Stage::Stage(std::shared_ptr<DeviceLink> link)
    : link_(std::move(link)), before_(link_->device.type()) {}

Stage::~Stage() { finish(false); }

at::Tensor Stage::memory(const at::Tensor& like, std::int64_t elements) {
  const auto bytes = static_cast<std::size_t>(elements) * like.element_size();
  blocks_.push_back(link_->memory->take(bytes));
  return at::from_blob(
      blocks_.back()->begin, {elements}, [block = blocks_.back()](void* /*memory*/) {},
      like.options().device(at::kCPU).requires_grad(false));
}

void Stage::copy(const at::Tensor& to, const at::Tensor& from) {
  before_.record(VirtualGuardImpl(link_->device.type()).getStream(link_->device));
  before_.block(link_->there);
  const c10::StreamGuard guard(link_->there);
  to.copy_(from, true);
  for (const at::Tensor* one : {&to, &from}) {
    if (one->device().is_cpu()) continue;
    read_.push_back(*one);
    record_use(*one, link_->there);
  }
  is_marked_ = false;
}

void Stage::mark(std::size_t place) {
  if (!is_marked_ && !read_.empty()) {
    copied_ = recorded(link_->there);
    is_marked_ = true;
  }
  needed_.resize(place + 1);
  needed_[place] = copied_;
}

void Stage::seal(std::vector<Copy> copies) {
  copies_ = std::move(copies);
  is_sealed_ = true;
  if (!is_marked_ && !read_.empty()) copied_ = recorded(link_->there);
  before_.record(VirtualGuardImpl(link_->device.type()).getStream(link_->device));
}

bool Stage::is_open(std::size_t place) {
  if (place >= needed_.size() || needed_[place] == nullptr) return true;
  if (!needed_[place]->query()) return false;
  needed_[place] = nullptr;
  return true;
}

void Stage::has_ended(std::size_t place) {
  if (is_finished_ || failure_ != nullptr) return;
  try {
    const auto is_done = [this, place](const Copy& copy) {
      if (copy.after != place) return false;
      copy_back(copy);
      return true;
    };
    copies_.erase(std::remove_if(copies_.begin(), copies_.end(), is_done), copies_.end());
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Stage::order_copies_back() {
  if (std::exchange(is_ordered_, true)) return;
  before_.block(link_->back);
  if (copied_ != nullptr) copied_->block(link_->back);
}

void Stage::copy_back(const Copy& copy) {
  order_copies_back();
  const c10::InferenceMode as_values;
  at::Tensor from = copy.from;
  if (copy.op.has_value()) {
    // In the block, which lives as long as the device reads.
    from = copy.from.select(0, 0);
    from.copy_(combined(copy.from, *copy.op));
  }
  check_memory(copy.to);  // it may have been resized to nothing
  const c10::StreamGuard guard(link_->back);
  copy.to.copy_(from, true);
  record_use(copy.to, link_->back);
}

// PyTorch hands the memory out again no sooner than the stream has passed this point.
void Stage::record_use(const at::Tensor& tensor, const c10::Stream& stream) {
  VirtualGuardImpl(link_->device.type()).recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

void Stage::copy_rest() {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  order_copies_back();
  for (const Copy& copy : copies_) copy_back(copy);
}

void Stage::finish(bool is_well) noexcept {
  if (std::exchange(is_finished_, true)) return;
  copies_.clear();
  try {
    // Of a call that was refused before its end, what was copied last. Later calls of the group
    // have no part in what another one waits for.
    if (!is_sealed_ && !read_.empty()) copied_ = recorded(link_->there);
    if (copied_ != nullptr) copied_->block(link_->back);
    last_ = recorded(link_->back);
    for (const StagingMemory::BlockPointer& block : blocks_) block->last = last_;
    if (!is_well && is_ordered_) wait_for_copies_back();
  } catch (const std::exception&) {
    // Nobody knows what the device still does with them.
    for (const StagingMemory::BlockPointer& block : blocks_) {
      new StagingMemory::BlockPointer(block);
    }
  }
  blocks_.clear();
  if (is_well) read_.clear();
}

// On the progress thread, which handles no signals. A device that takes longer still has before it
// what the caller's stream was told before the call: what that is told after wait() comes later.
void Stage::wait_for_copies_back() {
  const Clock::time_point deadline = Clock::now() + kLastCopies;
  while (!last_->query() && Clock::now() < deadline) std::this_thread::sleep_for(kLook);
}

void Stage::order_before_caller() {
  if (last_ == nullptr || !is_ordered_) return;
  last_->block(VirtualGuardImpl(link_->device.type()).getStream(link_->device));
}

void Stage::wait_for_copies(Clock::time_point deadline) {
  Clock::time_point signals = Clock::now() + kSignalInterval;
  while (copied_ != nullptr && !copied_->query()) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      throw std::runtime_error(std::string(kTimeout) + "the device has yet to give its tensors");
    }
    if (now >= signals) {
      handle_signals();
      signals = now + kSignalInterval;
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace gradcube::pytorch
