#include "protocol/credit.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gradcube::protocol {

CreditPool::CreditPool(PortCredit& port, unsigned engine)
    : port_(port),
      engine_(engine),
      budget_(port.window_that_shrinks() == 0
                  ? port.most()
                  : port.window_that_shrinks() * port.packets_of_segment() * kPartsOfPacket) {
  assert(engine < PortCredit::kMostEngines);
}

CreditPool::~CreditPool() {
  if (!port_.unlimited()) {
    port_.give_back(outstanding_ + static_cast<std::uint64_t>(to_give_back_));
  }
  port_.set_wanting(engine_, false);
}

CreditPool::Handle CreditPool::add(ReceiveWindow* window, const CreditRank& rank) {
  Handle flow = static_cast<Handle>(shares_.size());
  if (free_.empty()) {
    const std::size_t flows = shares_.size() + 1;
    open_.resize(flows);
    round_.reserve(flows);
    raised_.reserve(flows);
    free_.reserve(flows);
    shares_.emplace_back();
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  Share& share = shares_[flow];
  share = Share{};
  share.window = window;
  share.rank = rank;
  share.demand = window->highest();
  share.active = true;
  set_outstanding(share, static_cast<std::uint32_t>(window->limit() - window->arrivals()));
  open(flow);
  return flow;
}

void CreditPool::remove(Handle flow) {
  outstanding_ -= shares_[flow].outstanding;
  to_give_back_ += shares_[flow].outstanding;
  shares_[flow] = Share{};
  free_.push_back(flow);
  open_.erase(flow);
  changed_ = true;
}

// What came unasked is not here: the queue has room of its own for it.
void CreditPool::account(Share& share) {
  const std::uint64_t missing = share.window->limit() - share.window->arrivals();
  const auto left = static_cast<std::uint32_t>(std::min<std::uint64_t>(share.outstanding, missing));
  if (left != share.outstanding) {
    share.active = true;
  }
  set_outstanding(share, left);
}

void CreditPool::set_outstanding(Share& share, std::uint32_t outstanding) {
  outstanding_ = outstanding_ - share.outstanding + outstanding;
  to_give_back_ += std::int64_t{share.outstanding} - std::int64_t{outstanding};
  share.outstanding = outstanding;
}

void CreditPool::end_leases(Nanoseconds now) {
  if (now < leases_end_) return;
  leases_end_ = now + port_.lease();
  for (Share& share : shares_) {
    if (share.window == nullptr) continue;
    account(share);
    if (std::exchange(share.active, false) || share.outstanding == 0) continue;
    set_outstanding(share, 0);
    share.demand = share.window->limit();
    changed_ = true;
  }
}

void CreditPool::set_consumed(Handle flow, std::uint64_t prefix, Nanoseconds now) {
  if (shares_[flow].window->set_consumed(prefix, now)) open(flow);
}

void CreditPool::raise(Handle flow, std::uint64_t limit) {
  Share& share = shares_[flow];
  const std::uint64_t before = share.window->limit();
  if (!share.window->raise_limit(limit)) return;
  raised_.push_back(flow);
  // What it has already keeps the lease that it has.
  if (share.outstanding == 0) share.active = true;
  const std::uint64_t granted = share.window->limit() - before;
  set_outstanding(share, static_cast<std::uint32_t>(share.outstanding + granted));
}

void CreditPool::set_wanting(bool wanting) {
  if (wanting == wanting_) return;
  wanting_ = wanting;
  port_.set_wanting(engine_, wanting);
}

void CreditPool::distribute_unlimited() {
  for (std::size_t flow = open_.next(0); flow < open_.size(); flow = open_.next(flow + 1)) {
    const ReceiveWindow& window = *shares_[flow].window;
    raise(static_cast<Handle>(flow), window.consumed() + window_left(window));
  }
  open_.clear();
  changed_ = false;
}

// What the network leaves of a flow's window.
std::uint64_t CreditPool::window_left(const ReceiveWindow& window) const {
  const std::uint64_t whole = window.most() - window.consumed();
  if (port_.window_that_shrinks() == 0) return whole;
  const std::uint64_t left = whole * budget_.segments() / budget_.most();
  const std::uint64_t packets = port_.packets_of_segment();
  return std::min(whole, std::max(left, (CreditBudget::kLeast + packets - 1) / packets));
}

// The flows that ask for more than they have; returns how much more. The others are closed until
// something of theirs changes.
std::uint64_t CreditPool::collect_claims() {
  std::uint64_t demand = 0;
  round_.clear();
  for (std::size_t flow = open_.next(0); flow < open_.size(); flow = open_.next(flow + 1)) {
    const Share& share = shares_[flow];
    const std::uint64_t most = std::min(share.demand, share.window->most());
    if (most <= share.window->limit()) {
      open_.erase(flow);
    } else {
      const std::uint64_t more = most - share.window->limit();
      demand += more;
      round_.add(static_cast<Handle>(flow), share.rank, std::min(more, port_.round()));
    }
  }
  return demand;
}

bool CreditPool::distribute(Nanoseconds now) {
  raised_.clear();
  if (changed_) {
    for (std::size_t flow = open_.next(0); flow < open_.size(); flow = open_.next(flow + 1)) {
      account(shares_[flow]);
    }
  }
  if (port_.unlimited()) {
    if (changed_) distribute_unlimited();
    return !raised_.empty();
  }
  if (port_.anyone_wants()) end_leases(now);
  if (to_give_back_ != 0) {
    port_.give_back(static_cast<std::uint64_t>(to_give_back_));
    to_give_back_ = 0;
  }
  const bool more_at_the_port = starved_ && port_.has_room(outstanding_, budget_.segments());
  if (!changed_ && !more_at_the_port) return false;
  changed_ = false;
  const std::uint64_t demand = collect_claims();
  if (demand == 0) {
    starved_ = false;
    set_wanting(false);
    return false;
  }
  const std::uint64_t taken =
      port_.take(engine_, round_.first_rank(), outstanding_, round_.wanted(), budget_.segments());
  starved_ = taken < round_.wanted();
  set_wanting(taken < demand);
  if (taken == 0) return false;
  round_.hand_out(taken);
  for (const GrantRound::Claim& claim : round_.claims()) {
    if (claim.granted == 0) continue;
    raise(claim.flow, shares_[claim.flow].window->limit() + claim.granted);
  }
  // The port knows of these.
  to_give_back_ += static_cast<std::int64_t>(taken);
  return true;
}

}  // namespace gradcube::protocol
