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

CreditPool::Handle CreditPool::add(ReceiveWindow* window, unsigned most) {
  Handle flow = static_cast<Handle>(members_.size());
  if (free_.empty()) {
    members_.emplace_back();
    open_.resize(members_.size());
    wanting_.reserve(members_.size());
    raised_.reserve(2 * members_.size());
    free_.reserve(members_.size());
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  Member& member = members_[flow];
  member = Member{};
  member.window = window;
  member.most = std::min(most, window_);
  member.demand = window->highest();
  account(member);
  open(flow);
  return flow;
}

void CreditPool::remove(Handle flow) {
  outstanding_ -= members_[flow].outstanding;
  members_[flow] = Member{};
  free_.push_back(flow);
  open_.erase(flow);
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
  open(flow);
}

void CreditPool::set_consumed(Handle flow, std::uint64_t prefix, Nanoseconds now) {
  if (members_[flow].window->set_consumed(prefix, now)) open(flow);
}

void CreditPool::open(Handle flow) {
  open_.insert(flow);
  changed_ = true;
}

void CreditPool::raise(Handle flow, std::uint64_t limit) {
  Member& member = members_[flow];
  if (member.window->raise_limit(limit)) raised_.push_back(flow);
  account(member);
}

void CreditPool::distribute_unlimited() {
  for (std::size_t flow = open_.next(0); flow < open_.size(); flow = open_.next(flow + 1)) {
    raise(static_cast<Handle>(flow), members_[flow].window->consumed() + members_[flow].most);
  }
  open_.clear();
}

void CreditPool::give_floors() {
  for (std::size_t flow = open_.next(0); flow < open_.size(); flow = open_.next(flow + 1)) {
    const Member& member = members_[flow];
    const ReceiveWindow& window = *member.window;
    if (member.outstanding != 0 || window.limit() >= window.consumed() + member.most) continue;
    raise(static_cast<Handle>(flow), window.limit() + 1);
  }
}

// Those that ask for more than they have, in the order of the round. The others are closed until
// something of theirs changes.
void CreditPool::collect_wanting() {
  wanting_.clear();
  const auto collect = [this](std::size_t from, std::size_t end) {
    for (std::size_t flow = open_.next(from); flow < end; flow = open_.next(flow + 1)) {
      Member& member = members_[flow];
      const std::uint64_t most = std::min(member.demand, member.window->consumed() + member.most);
      if (most <= member.window->limit()) {
        open_.erase(flow);
        continue;
      }
      member.wanted = static_cast<std::uint32_t>(most - member.window->limit());
      member.grants = 0;
      wanting_.push_back(static_cast<Handle>(flow));
    }
  };
  const std::size_t first = first_ < members_.size() ? first_ : 0;
  collect(first, members_.size());
  collect(0, first);
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
  raised_.clear();
  if (!changed_) return false;
  changed_ = false;
  if (unlimited_) {
    distribute_unlimited();
    return !raised_.empty();
  }
  give_floors();
  if (outstanding_ < budget_segments_) {
    collect_wanting();
    share(budget_segments_ - outstanding_);
    for (const Handle flow : wanting_) {
      const Member& member = members_[flow];
      if (member.grants != 0) raise(flow, member.window->limit() + member.grants);
    }
  }
  return !raised_.empty();
}

}  // namespace gradcube::protocol
