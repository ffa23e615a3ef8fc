// Receiver-granted credit: how much all the senders behind one port may have on their way at once.
//
// A port's budget is W = min(2 BDP, its share of the switch's buffer). The sequences that are
// granted and not here yet, over all flows that come in through the port, take at most W: then the
// switch never drops a segment for want of buffer, whatever the schedule. Credit follows demand: a
// sender reports its backlog with everything that it sends, and is granted up to that, one segment
// at a time, in turn with the others. What an idle flow does not ask for, a flow that is ahead
// gets. Every flow has a floor of one segment, which may go beyond W, so that it can always make
// itself heard.
//
// A second bound is the memory: a flow's limit is at most `window` sequences beyond its consumed
// prefix, all sequences below which have been used up and no longer hold a receive buffer.
//
// With an unlimited budget (no rate, no bounded queue to protect) the limit is simply consumed
// prefix + window.
//
// Use: on_arrival() after each frame of a flow that ReceiveWindow::arrive() has seen,
// set_consumed() as segments are used up, distribute() once per burst and before acknowledgements
// are written. distribute() costs nothing if nothing changed, else the number of flows plus the
// number of grants. One pool belongs to one port of one engine; add() and remove() allocate and
// belong to set-up.
#ifndef GRADCUBE_PROTOCOL_CREDIT_H_
#define GRADCUBE_PROTOCOL_CREDIT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "protocol/receive_window.h"

namespace gradcube::protocol {

struct CreditSettings {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t budget_bytes = kUnlimited;  // W
  std::uint32_t segment_bytes = 1500;  // what one segment takes in the switch, all headers included
  unsigned window = ReceiveWindow::kWindow;  // 1 .. ReceiveWindow::kWindow
};

class CreditPool {
 public:
  using Handle = std::uint32_t;

  // Throws std::invalid_argument for a segment of no bytes or a window out of its range.
  explicit CreditPool(const CreditSettings& settings);

  // Takes a flow in, all sequences of which below `consumed` have been used up: a flow may be under
  // way, and hold what has arrived. The window outlives its membership, and from now on only the
  // pool raises its limit.
  Handle add(ReceiveWindow* window, std::uint64_t consumed);
  // The same for a flow that holds nothing.
  Handle add(ReceiveWindow* window) { return add(window, window->cumulative()); }
  // Its outstanding grants return to the budget. The number may be given out again.
  void remove(Handle flow);

  // A frame of the flow has arrived, whose sender reports `backlog` segments ready beyond those it
  // has sent.
  void on_arrival(Handle flow, std::uint8_t backlog);
  // All sequences below `prefix` have been used up. Never falls; at most the flow's cumulative().
  void set_consumed(Handle flow, std::uint64_t prefix);

  // Raises limits. True if one rose: acknowledgements may be owed for it.
  bool distribute();

  // Segments granted and not here yet, over all flows.
  std::uint64_t outstanding() const { return outstanding_; }
  std::uint64_t budget_segments() const { return budget_segments_; }

 private:
  struct Member {
    ReceiveWindow* window = nullptr;
    std::uint64_t consumed = 0;
    std::uint64_t demand = 0;  // the sender has segments ready up to this sequence
    std::uint32_t outstanding = 0;
    std::uint32_t grants = 0;  // of this distribution
    std::uint32_t wanted = 0;  // of this distribution
  };

  bool distribute_unlimited();
  bool give_floors();
  void collect_wanting();
  void share(std::uint64_t segments);
  bool grant(Member& member, std::uint32_t segments);
  void account(Member& member);

  std::uint64_t budget_segments_;
  unsigned window_;
  bool unlimited_;
  bool changed_ = false;
  Handle first_ = 0;  // who is first in the next distribution
  std::uint64_t outstanding_ = 0;
  std::vector<Member> members_;
  std::vector<Handle> free_;
  std::vector<Handle> wanting_;  // capacity for all members, so that distribute() does not allocate
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CREDIT_H_
