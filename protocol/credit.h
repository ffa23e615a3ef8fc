// Receiver-granted credit: how much all senders behind one port may have outstanding at once.
//
// Budget. A port has a budget W in bytes. The sequences that are granted and have not arrived, over
// all flows that come in through the port, take at most W. The caller chooses W: min(2 BDP, the
// port's share of the switch's buffer) would keep a link full and the switch from dropping,
// whatever the schedule; the embedded fabric chooses more, and relies on the senders' rotation to
// keep the queue short (docs/protocol.md, section 4).
//
// Demand. A sender reports its backlog with every frame. The pool grants up to this backlog, one
// segment at a time, round robin over the flows. Credit that an idle flow does not request goes to
// a busy one. Every flow has a floor of one segment, so that it can always report a backlog. Floors
// count against W, and alone they may exceed it.
//
// Memory. A flow's limit is at most so many sequences beyond its consumed prefix as it was added
// with; its ReceiveWindow keeps the prefix. All sequences below this prefix have been used and hold no receive buffer.
//
// With an unlimited budget (no rate and no bounded queue) the limit is always as high as that.
//
// Use: call on_arrival() after each frame of a flow that ReceiveWindow::arrive() has seen,
// set_consumed() when segments are used, and distribute() once per burst and before
// acknowledgements are written. distribute() returns at once if nothing changed; else it takes time
// in the number of flows that something changed for or that were left wanting, plus the number of
// grants. One pool belongs to one port of one engine.
// add() and remove() allocate and belong to set-up.
#ifndef GRADCUBE_PROTOCOL_CREDIT_H_
#define GRADCUBE_PROTOCOL_CREDIT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "protocol/index_set.h"
#include "protocol/receive_window.h"

namespace gradcube::protocol {

struct CreditSettings {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t budget_bytes = kUnlimited;  // W
  // Bytes of one segment in the switch, all headers included.
  std::uint32_t segment_bytes = 1500;
  unsigned window = ReceiveWindow::kWindow;  // 1 .. ReceiveWindow::kWindow
};

class CreditPool {
 public:
  using Handle = std::uint32_t;

  // Throws std::invalid_argument for a segment of no bytes or a window out of its range.
  explicit CreditPool(const CreditSettings& settings);

  // Adds a flow that holds no segments, which may be granted `most` sequences beyond its consumed
  // prefix: at most the settings' window, and this if nothing is said. The window must outlive its
  // membership; from now on only the pool raises its limit.
  Handle add(ReceiveWindow* window, unsigned most);
  Handle add(ReceiveWindow* window) { return add(window, window_); }
  // The flow's outstanding grants return to the budget. The pool may reuse the handle.
  void remove(Handle flow);

  // A frame of the flow has arrived. Its sender has `backlog` more segments ready.
  void on_arrival(Handle flow, std::uint8_t backlog);
  // ReceiveWindow::set_consumed() of the flow's window, and what it makes room for.
  void set_consumed(Handle flow, std::uint64_t prefix, Nanoseconds now);

  // Raises limits. True if a limit rose: an acknowledgement may be due for it.
  bool distribute();
  // Whose limits the last distribute() has raised; a flow may be named twice.
  std::span<const Handle> raised() const { return raised_; }

 private:
  struct Member {
    ReceiveWindow* window = nullptr;
    unsigned most = 0;         // sequences beyond the consumed prefix
    std::uint64_t demand = 0;  // the sender has segments ready up to this sequence
    std::uint32_t outstanding = 0;
    std::uint32_t grants = 0;  // of this distribution
    std::uint32_t wanted = 0;  // of this distribution
  };

  void open(Handle flow);
  void raise(Handle flow, std::uint64_t limit);
  void distribute_unlimited();
  void give_floors();
  void collect_wanting();
  void share(std::uint64_t segments);
  void account(Member& member);

  std::uint64_t budget_segments_;
  unsigned window_;
  bool unlimited_;
  bool changed_ = false;
  Handle first_ = 0;               // the first flow in the next distribution
  std::uint64_t outstanding_ = 0;  // segments that are granted and have not arrived, over all flows
  std::vector<Member> members_;
  std::vector<Handle> free_;
  IndexSet open_;  // those that may get something: changed since, or left wanting
  // With capacity for all members, so that distribute() does not allocate.
  std::vector<Handle> wanting_;
  std::vector<Handle> raised_;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_CREDIT_H_
