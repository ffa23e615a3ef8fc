#include "dataplane/engine/memory/memory_quota.h"

namespace gradcube::dataplane {

namespace {

bool is_allowed(std::uint64_t bytes, std::uint64_t others, std::uint64_t limit) {
  return bytes <= limit && others <= limit - bytes;
}

std::uint64_t bytes_of(const std::map<uid_t, std::uint64_t>& users, uid_t user) {
  const auto found = users.find(user);
  return found == users.end() ? 0 : found->second;
}

}  // namespace

std::uint64_t MemoryQuota::Users::of(uid_t user) {
  const std::lock_guard<std::mutex> lock(mutex);
  return bytes_of(used, user);
}

std::map<uid_t, std::uint64_t> MemoryQuota::users() const {
  const std::lock_guard<std::mutex> lock(users_->mutex);
  return users_->used;
}

bool MemoryQuota::Charge::may_hold(std::uint64_t bytes) const {
  return users_ == nullptr || bytes <= bytes_ || is_allowed(bytes, used() - bytes_, limit());
}

bool MemoryQuota::Charge::may_hold_soon(std::uint64_t bytes) const {
  if (users_ == nullptr) return true;
  const std::lock_guard<std::mutex> lock(users_->mutex);
  return is_allowed(bytes, bytes_of(users_->used, user_) - bytes_of(users_->going, user_),
                    users_->limit);
}

void MemoryQuota::Charge::go() {
  if (users_ == nullptr || bytes_ == 0 || goes_) return;
  const std::lock_guard<std::mutex> lock(users_->mutex);
  users_->going[user_] += bytes_;
  goes_ = true;
}

bool MemoryQuota::Charge::set(std::uint64_t bytes) {
  if (users_ != nullptr && bytes != bytes_) {
    const std::lock_guard<std::mutex> lock(users_->mutex);
    const auto user = users_->used.try_emplace(user_).first;
    const std::uint64_t others = user->second - bytes_;
    const bool allowed = bytes < bytes_ || is_allowed(bytes, others, users_->limit);
    if (goes_) {  // which is all at once, at its end
      const auto going = users_->going.find(user_);
      if ((going->second -= bytes_) == 0) users_->going.erase(going);
    }
    if (allowed) user->second = others + bytes;
    if (user->second == 0) users_->used.erase(user);
    if (!allowed) return false;
  }
  bytes_ = bytes;
  return true;
}

}  // namespace gradcube::dataplane
