#include "dataplane/engine/memory_quota.h"

#include <utility>

namespace gradcube::dataplane {

std::uint64_t MemoryQuota::used(uid_t user) const {
  const auto found = used_.find(user);
  return found == used_.end() ? 0 : found->second;
}

MemoryQuota::Charge::Charge(Charge&& other) noexcept
    : quota_(std::exchange(other.quota_, nullptr)),
      user_(other.user_),
      bytes_(std::exchange(other.bytes_, 0)) {}

bool MemoryQuota::Charge::may_hold(std::uint64_t bytes) const {
  if (quota_ == nullptr || bytes <= bytes_) return true;
  const std::uint64_t others = used() - bytes_;
  return bytes <= limit() && others <= limit() - bytes;
}

bool MemoryQuota::Charge::set(std::uint64_t bytes) {
  if (!may_hold(bytes)) return false;
  if (quota_ != nullptr) {
    const std::uint64_t all = used() - bytes_ + bytes;
    if (all == 0) {
      quota_->used_.erase(user_);
    } else {
      quota_->used_[user_] = all;
    }
  }
  bytes_ = bytes;
  return true;
}

}  // namespace gradcube::dataplane
