// Receiver-granted credit: how much all senders behind one port may have outstanding at once.
//
// Budget. The segments that are granted and have not arrived, over all flows that come in through
// the port, are never more than the budget, which the server's engines share (port_credit.h). The
// caller chooses it: the port's share of its switch's queue, less what comes unasked. Then the
// queue does not overflow, whoever sends when. The network can make it less (credit_budget.h).
// What is sent unasked (send_window.h) does not count: the queue has room of its own for it.
//
// Demand. A frame says up to which sequence its sender has segments ready. The pool grants no more
// than that, in the order of grant_round.h. So a flow that has nothing to send holds no credit, and
// what is granted can be sent.
//
// Slow start. In each distribute() a flow gets a few segments at most, PortCredit::round(); the
// next ones need a new arrival. The first one to ask would else be granted the whole budget at
// once, and the port would be served by a sender that has other ports to serve, while the others
// wait for its segments to arrive. So servers that do not begin at the same moment would fall out
// of step. The price: a flow that is alone gets no more than this in an iteration of its poller.
//
// Leases. A sender may become unable to use what it was granted: its collective has failed, its
// process stands still, it is hostile. While others want credit, what is granted to a flow of which
// no segment has come for a lease does not count against the budget any more, and the flow gets no
// more until its sender asks anew. The limit stays: should the sender go on, its segments are
// taken, and for so long more may be on their way than the budget.
//
// Memory. A flow's limit is at most one window beyond its consumed prefix (ReceiveWindow::most()).
// All sequences below this prefix have been used and hold no receive buffer.
//
// With an unlimited budget (no rate and no bounded queue) the limit is ReceiveWindow::most(). Where
// nobody knows what the network holds (window_that_shrinks), it is less while the network says that
// it is too much, by the same law (credit_budget.h): all flows have the same part of their windows,
// and at least CreditBudget::kLeast packets. A round is then as many arrivals as all of them may
// have on their way, and adds an eighth of a packet to each flow's window: with a whole one they
// would fill a short queue again at once. So flows need not ask before they send, and yet give way.
// A packet is a segment, or one of the several in which each segment passes the network: the law is
// about what its queues hold, however long segments are.
//
// Use: call on_frame() after each frame of a flow that its ReceiveWindow has seen,
// set_consumed() when segments are used, and distribute() once per burst and before
// acknowledgements are written. distribute() returns at once if nothing changed; else it takes time
// in the number of flows that something changed for or that were left wanting, plus the number of
// grants. One pool belongs to one port of one engine.
// add() allocates and belongs to set-up.
#ifndef GRADCUBE_PROTOCOL_CREDIT_H_
#define GRADCUBE_PROTOCOL_CREDIT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/credit_budget.h"
#include "protocol/grant_round.h"
#include "protocol/index_set.h"
#include "protocol/port_credit.h"
#include "protocol/receive_window.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

class CreditPool {
 public:
  using Handle = std::uint32_t;

  // port: must outlive the pool. engine: the number of this pool's engine there.
  CreditPool(PortCredit& port, unsigned engine);
  // What is granted returns to the port.
  ~CreditPool();
  CreditPool(const CreditPool&) = delete;
  CreditPool& operator=(const CreditPool&) = delete;

  // Adds a flow that holds no segments. The window must outlive its membership; from now on only
  // the pool raises its limit. What it was granted before, as a member that has left, and what has
  // not arrived of that may be on its way: it counts at once, with a lease of its own.
  // Where there is no memory it is no member.
  Handle add(ReceiveWindow* window, const CreditRank& rank = {});
  // The flow's outstanding grants return to the budget. The pool may reuse the handle.
  void remove(Handle flow);

  // A frame of the flow has arrived. It says that its sender has all segments below `ready` ready;
  // what no honest sender can have ready is not believed. age: the number of the collective that
  // has the sequence at the flow's limit.
  void on_frame(Handle flow, std::uint64_t ready, std::uint64_t age = 0) {
    Share& share = shares_[flow];
    // A sequence that was damaged or invented must not count as a demand for ever.
    ready = std::min(ready, share.window->most() + kMostBacklog);
    share.demand = std::max(share.demand, ready);
    share.rank.age = age;
    open(flow);
  }
  // One of its segments has, for the first time, of so many bytes. marked: congestion; sent_again:
  // not as it was first sent.
  void on_segment(bool marked, bool sent_again, std::uint32_t bytes) {
    const std::uint64_t round =
        port_.window_that_shrinks() == 0
            ? budget_.segments()
            : budget_.segments() * (shares_.size() - free_.size()) / kPartsOfPacket;
    if (budget_.on_arrival(marked, sent_again, round, port_.packets_of(bytes))) changed_ = true;
  }
  // ReceiveWindow::set_consumed() of the flow's window, and what it makes room for.
  void set_consumed(Handle flow, std::uint64_t prefix, Nanoseconds now);

  // Raises limits. True if a limit rose: an acknowledgement may be due for it.
  bool distribute(Nanoseconds now = 0);
  // Whose limits the last distribute() has raised: each once.
  std::span<const Handle> raised() const { return raised_; }

  // Whether a flow wants more than the budget had for it. Other engines can give some back, so the
  // next distribute() may find some without an arrival here.
  bool starved() const { return starved_; }

  // Segments that are granted and have not arrived, over all flows of this pool, as of the last
  // distribute().
  std::uint64_t outstanding() const { return outstanding_; }
  const CreditBudget& budget() const { return budget_; }

 private:
  // That a budget counts where it is of a window.
  static constexpr std::uint64_t kPartsOfPacket = 8;

  struct Share {
    ReceiveWindow* window = nullptr;
    std::uint64_t demand = 0;       // the sender has segments ready up to this sequence
    std::uint32_t outstanding = 0;  // granted, not arrived, and within the lease
    // Since the last look a segment of it has come, or it got a grant and had none before.
    bool active = false;
    CreditRank rank;
  };

  void open(Handle flow) {
    open_.insert(flow);
    changed_ = true;
  }
  void raise(Handle flow, std::uint64_t limit);
  void distribute_unlimited();
  std::uint64_t window_left(const ReceiveWindow& window) const;
  std::uint64_t collect_claims();
  void account(Share& share);
  void set_outstanding(Share& share, std::uint32_t outstanding);
  void end_leases(Nanoseconds now);
  void set_wanting(bool wanting);

  PortCredit& port_;
  unsigned engine_;
  CreditBudget budget_;
  bool changed_ = false;
  bool starved_ = false;
  bool wanting_ = false;        // what the port knows: a flow wants more than it has
  Nanoseconds leases_end_ = 0;  // when it looks next
  std::uint64_t outstanding_ = 0;
  // What the port does not know yet: outstanding_ has become less by this, or more where negative.
  std::int64_t to_give_back_ = 0;
  std::vector<Share> shares_;
  std::vector<Handle> free_;
  IndexSet open_;  // those that may get something: changed since, or left wanting
  GrantRound round_;
  std::vector<Handle> raised_;  // with capacity for all members
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CREDIT_H_
