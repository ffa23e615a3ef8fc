#include "protocol/credit.h"

#include <algorithm>
#include <stdexcept>

namespace gradcube::protocol {

CreditPool::CreditPool(const CreditSettings& settings)
    : budget_segments_(0),
      window_(settings.window),
      unlimited_(settings.budget_bytes == CreditSettings::kUnlimited) {
  if (settings.segment_bytes == 0) {
    throw std::invalid_argument("segment_bytes is 0: it must be at least 1");
  }
  if (window_ == 0 || window_ > ReceiveWindow::kWindow) {
    throw std::invalid_argument("a flow's credit window must be 1 to 128 segments");
  }
  budget_segments_ = settings.budget_bytes / settings.segment_bytes;
}

CreditPool::Handle CreditPool::add(ReceiveWindow* window) {
  Handle flow = static_cast<Handle>(members_.size());
  if (free_.empty()) {
    members_.emplace_back();
    wanting_.reserve(members_.size());
    free_.reserve(members_.size());
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  Member& member = members_[flow];
  member = Member{};
  member.window = window;
  member.demand = window->highest();
  account(member);
  changed_ = true;
  return flow;
}

void CreditPool::remove(Handle flow) {
  outstanding_ -= members_[flow].outstanding;
  members_[flow] = Member{};
  free_.push_back(flow);
  changed_ = true;
}

void CreditPool::account(Member& member) {
  const auto now = static_cast<std::uint32_t>(member.window->limit() - member.window->arrivals());
  outstanding_ = outstanding_ - member.outstanding + now;
  member.outstanding = now;
}

void CreditPool::on_arrival(Handle flow, std::uint8_t backlog) {
  Member& member = members_[flow];
  account(member);
  member.demand = std::max(member.demand, member.window->highest() + backlog);
  changed_ = true;
}

void CreditPool::set_consumed(Handle flow, std::uint64_t prefix, Nanoseconds now) {
  if (members_[flow].window->set_consumed(prefix, now)) changed_ = true;
}

bool CreditPool::grant(Member& member, std::uint32_t segments) {
  const bool raised = member.window->raise_limit(member.window->limit() + segments);
  account(member);
  return raised;
}

bool CreditPool::distribute_unlimited() {
  bool raised = false;
  for (Member& member : members_) {
    if (member.window == nullptr) continue;
    raised |= member.window->raise_limit(member.window->consumed() + window_);
    account(member);
  }
  return raised;
}

bool CreditPool::give_floors() {
  bool raised = false;
  for (Member& member : members_) {
    if (member.window == nullptr || member.outstanding != 0) continue;
    if (member.window->limit() < member.window->consumed() + window_) raised |= grant(member, 1);
  }
  return raised;
}

void CreditPool::collect_wanting() {
  wanting_.clear();
  const auto count = static_cast<Handle>(members_.size());
  for (Handle step = 0; step < count; ++step) {
    const Handle flow = (first_ + step) % count;
    Member& member = members_[flow];
    if (member.window == nullptr) continue;
    const std::uint64_t most = std::min(member.demand, member.window->consumed() + window_);
    if (most <= member.window->limit()) continue;
    member.wanted = static_cast<std::uint32_t>(most - member.window->limit());
    member.grants = 0;
    wanting_.push_back(flow);
  }
}

void CreditPool::share(std::uint64_t segments) {
  std::size_t left = wanting_.size();
  std::size_t at = 0;
  while (segments > 0 && left > 0) {
    if (at >= left) at = 0;
    Member& member = members_[wanting_[at]];
    ++member.grants;
    --segments;
    first_ = wanting_[at] + 1;
    if (member.grants == member.wanted) {
      // This flow leaves the round. The remaining flows keep their round-robin order.
      std::rotate(wanting_.begin() + static_cast<std::ptrdiff_t>(at),
                  wanting_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                  wanting_.begin() + static_cast<std::ptrdiff_t>(left));
      --left;
    } else {
      ++at;
    }
  }
}

bool CreditPool::distribute() {
  if (!changed_) return false;
  changed_ = false;
  if (unlimited_) return distribute_unlimited();
  bool raised = give_floors();
  if (outstanding_ >= budget_segments_) {
    return raised;
  }
  collect_wanting();
  share(budget_segments_ - outstanding_);
  for (const Handle flow : wanting_) {
    Member& member = members_[flow];
    if (member.grants != 0) raised |= grant(member, member.grants);
  }
  return raised;
}

}  // namespace gradcube::protocol
