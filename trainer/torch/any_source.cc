#include "trainer/torch/any_source.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <c10/core/InferenceMode.h>
#include <stdexcept>
#include <string>

#include "trainer/torch/tensors.h"

namespace gradcube::pytorch {

std::optional<int> KeptMessages::take(std::uint64_t tag, std::optional<int> from,
                                      const at::Tensor& output) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.count(tag) != 0) {
    throw std::runtime_error("a receive from any rank waits for a message of tag " +
                             std::to_string(tag) +
                             ": expected another tag, or that it is waited for first");
  }
  const auto kept = messages_.find(tag);
  if (kept == messages_.end()) return std::nullopt;
  std::deque<KeptMessage>& messages = kept->second;
  const auto chosen = std::find_if(
      messages.begin(), messages.end(),
      [from](const KeptMessage& message) { return message.from == from.value_or(message.from); });
  if (chosen == messages.end()) return std::nullopt;
  check_whole(chosen->memory, output, 1);
  output.copy_(chosen->memory.view(output.sizes()));
  const int source = chosen->from;
  messages.erase(chosen);
  if (messages.empty()) messages_.erase(kept);
  return source;
}

void KeptMessages::keep(std::uint64_t tag, KeptMessage message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  messages_[tag].push_back(std::move(message));
}

void KeptMessages::begin(std::uint64_t tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.insert(tag);
}

void KeptMessages::end(std::uint64_t tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.erase(tag);
}

AnySource::AnySource(std::shared_ptr<KeptMessages> kept, std::uint64_t tag, at::Tensor output)
    : kept_(std::move(kept)), tag_(tag), output_(std::move(output)) {
  kept_->begin(tag_);
}

AnySource::~AnySource() { finish(); }

void AnySource::has_ended(std::size_t place) {
  if (is_finished_) return;  // its receive was told that it is lost
  KeptMessage& message = receives_[place];
  if (first_.defined()) return kept_->keep(tag_, std::move(message));
  first_ = message.memory;
  source_ = message.from;
}

void AnySource::deliver() {
  const c10::InferenceMode as_values;
  output_.copy_(first_);
  is_delivered_ = true;
}

void AnySource::finish() {
  if (is_finished_.exchange(true)) return;
  if (first_.defined() && !is_delivered_) kept_->keep(tag_, {source_, first_});
  kept_->end(tag_);
}

}  // namespace gradcube::pytorch
