#include "dataplane/engine/memory/memory_quota.h"

namespace gradcube::dataplane {

namespace {

bool is_allowed(std::uint64_t bytes, std::uint64_t others, std::uint64_t limit) {
  return bytes <= limit && others <= limit - bytes;
}

}  // namespace

std::uint64_t MemoryQuota::Users::of(uid_t user) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = used.find(user);
  return found == used.end() ? 0 : found->second;
}

std::map<uid_t, std::uint64_t> MemoryQuota::users() const {
  const std::lock_guard<std::mutex> lock(users_->mutex);
  return users_->used;
}

bool MemoryQuota::Charge::may_hold(std::uint64_t bytes) const {
  return users_ == nullptr || bytes <= bytes_ || is_allowed(bytes, used() - bytes_, limit());
}

bool MemoryQuota::Charge::set(std::uint64_t bytes) {
  if (users_ != nullptr && bytes != bytes_) {
    const std::lock_guard<std::mutex> lock(users_->mutex);
    const auto user = users_->used.try_emplace(user_).first;
    const std::uint64_t others = user->second - bytes_;
    const bool allowed = bytes < bytes_ || is_allowed(bytes, others, users_->limit);
    if (allowed) user->second = others + bytes;
    if (user->second == 0) users_->used.erase(user);
    if (!allowed) return false;
  }
  bytes_ = bytes;
  return true;
}

}  // namespace gradcube::dataplane
