// What is on its way from one engine to one neighbour without having been granted. To servers
// further away nothing goes unasked: their room has no bytes.
//
// A flow may send a few bytes unasked (protocol/send_window.h), and the receiver's switch port has
// room for kBytes from each engine behind it: as much as two flows may send, a job's contributions
// and its results. So the flows of all jobs to a neighbour share this room; who finds none asks for
// credit. The flows themselves know what has arrived; here stands only whom to ask, and at most
// kMostFlows can have something on their way.
//
// A flow that takes another route stays in the room that it leaves as long as something of it is on
// its way there. So who removes a flow asks all rooms to forget it.
//
// Owned and used by one engine; no allocation.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_UNASKED_ROOM_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_UNASKED_ROOM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/engine/flows/flow.h"

namespace gradcube::dataplane {

class UnaskedRoom {
 public:
  static constexpr std::uint32_t kBytes = 2 * protocol::SendWindow::kUnaskedBytes;
  static constexpr std::size_t kMostFlows = 8;

  explicit UnaskedRoom(std::uint32_t bytes = kBytes) : bytes_(bytes) {}

  // Whether the flow may send a frame of so many bytes unasked.
  bool may_send(const Flow& flow, std::uint32_t frame_bytes) {
    if (!flow.send.may_send_unasked(frame_bytes)) return false;
    forget_if([](const Flow& each) { return each.send.unasked_on_the_way() == 0; });
    std::uint32_t bytes = frame_bytes;
    bool known = false;
    for (std::size_t i = 0; i < count_; ++i) {
      bytes += flows_[i]->send.unasked_on_the_way();
      known = known || flows_[i] == &flow;
    }
    return bytes <= bytes_ && (known || count_ < kMostFlows);
  }
  // It is going to.
  void record(Flow& flow) {
    const auto end = flows_.begin() + static_cast<std::ptrdiff_t>(count_);
    if (std::find(flows_.begin(), end, &flow) == end) flows_[count_++] = &flow;
  }

  void forget_all_of(const EngineJob& job) {
    forget_if([&job](const Flow& flow) { return flow.job == &job; });
  }
  // leaves(flow): it goes.
  template <typename Leaves>
  void forget_if(const Leaves& leaves) {
    const auto end = flows_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto stay =
        std::remove_if(flows_.begin(), end, [&](const Flow* flow) { return leaves(*flow); });
    count_ = static_cast<std::size_t>(stay - flows_.begin());
  }
  // That it knows: what they had on their way may have arrived.
  std::size_t flows() const { return count_; }

 private:
  std::uint32_t bytes_;
  std::array<Flow*, kMostFlows> flows_{};
  std::size_t count_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_UNASKED_ROOM_H_
