#include "trainer/torch/stage.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace gradcube::pytorch {
namespace {

using c10::impl::VirtualGuardImpl;

c10::Stream new_stream(c10::Device device) {
  try {
    return VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  } catch (const std::exception&) {
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

Stage::~Stage() { finish(); }

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
    if (!one->device().is_cpu()) read_.push_back(*one);
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
  const c10::StreamGuard guard(link_->back);
  copy.to.copy_(from, true);
  VirtualGuardImpl(link_->device.type())
      .recordDataPtrOnStream(copy.to.storage().data_ptr(), link_->back);
}

void Stage::copy_rest() {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  order_copies_back();
  for (const Copy& copy : copies_) copy_back(copy);
}

void Stage::finish() noexcept {
  if (std::exchange(is_finished_, true)) return;
  copies_.clear();
  try {
    // What was copied last, also by a call that was refused before its end.
    if (!read_.empty()) recorded(link_->there)->block(link_->back);
    const std::shared_ptr<c10::Event> last = recorded(link_->back);
    for (const StagingMemory::BlockPointer& block : blocks_) block->last = last;
  } catch (const std::exception&) {
    // Nobody knows what the device still does with them.
    for (const StagingMemory::BlockPointer& block : blocks_) {
      new StagingMemory::BlockPointer(block);
    }
  }
  blocks_.clear();
  read_.clear();
}

void Stage::wait_for_copies() {
  while (copied_ != nullptr && !copied_->query()) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace gradcube::pytorch
