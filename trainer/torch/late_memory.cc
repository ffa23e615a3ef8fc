#include "trainer/torch/late_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gradcube::pytorch {

void LateMemory::add(const void* group, std::shared_ptr<void> call, std::vector<Span> spans) {
  const std::lock_guard<std::mutex> lock(mutex_);
  late_.push_back({group, std::move(call), std::move(spans)});
  some_are_late_ = true;
}

void LateMemory::remove(const void* call) {
  remove_if([call](const Late& late) { return late.call.get() == call; });
}

void LateMemory::remove_all_of(const void* group) {
  remove_if([group](const Late& late) { return late.group == group; });
}

void LateMemory::remove_if(const std::function<bool(const Late&)>& is_it) {
  std::vector<Late> removed;  // let go of when the lock is free: that may need the interpreter's
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto first = std::stable_partition(late_.begin(), late_.end(), std::not_fn(is_it));
  std::move(first, late_.end(), std::back_inserter(removed));
  late_.erase(first, late_.end());
  some_are_late_ = !late_.empty();
}

bool LateMemory::has(const std::vector<Span>& touched) {
  if (!some_are_late_) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_late = [this](const Span& wanted) {
    return std::any_of(late_.begin(), late_.end(), [&wanted](const Late& late) {
      return std::any_of(late.spans.begin(), late.spans.end(), [&wanted](const Span& span) {
        return span.is_written && overlap(span, wanted);
      });
    });
  };
  return std::any_of(touched.begin(), touched.end(), is_late);
}

}  // namespace gradcube::pytorch
