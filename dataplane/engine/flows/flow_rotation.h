// A set of flows that are served in rotation, of which only those that are awake cost anything.
//
// A flow is awake while it may have something to do. What gives it something to do wakes it; a
// visit that finds nothing lets it sleep again. The order of the visits is that of the set, begun
// where the last one ended, whatever sleeps: with one flow per neighbour, begun at the next digit,
// this is the rotation that keeps each switch port to one sender at a time.
//
// add() and make_room() allocate and belong to set-up. Owned and used by one engine.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_ROTATION_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_ROTATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/index_set.h"

namespace gradcube::dataplane {

struct Flow;

class FlowRotation {
 public:
  // What a visit found.
  enum class Visit : std::uint8_t {
    served,   // it did something and may have more to do
    nothing,  // it has nothing to do: let it sleep
    later,    // not now: it stays awake
  };

  // For one more flow: then add() needs no memory, also after a remove_if().
  void make_room() {
    awake_.resize(flows_.size() + 1);
    if (flows_.size() == flows_.capacity()) flows_.reserve(2 * flows_.size() + 1);
  }
  // The flow's place in the set, by which it is woken. It sleeps. Where there is no memory it is
  // not in the set.
  std::size_t add(Flow& flow) {
    make_room();
    flows_.push_back(&flow);
    return flows_.size() - 1;
  }

  // Takes out all flows for which leaves(flow) is true; calls moved(flow, place) for each flow that
  // stays.
  template <typename Leaves, typename Moved>
  void remove_if(Leaves&& leaves, Moved&& moved);

  bool empty() const { return flows_.empty(); }
  bool any_awake() const { return !awake_.empty(); }
  // Whether it has slept.
  bool wake(std::size_t place) { return awake_.insert(place); }

  // Visits flows that are awake, one at a time, until `limit` visits have served something or a
  // whole round has not. Returns how many have. visit(flow) -> Visit; a visit may wake flows.
  template <typename VisitFlow>
  unsigned serve(unsigned limit, VisitFlow&& visit);

  // Calls visit(flow) for each flow.
  template <typename VisitFlow>
  void for_each(VisitFlow&& visit) const {
    for (Flow* flow : flows_) visit(*flow);
  }

  // Calls visit(flow) -> Visit once for each flow that is awake, in the order of the set.
  template <typename VisitFlow>
  void for_each_awake(VisitFlow&& visit);

 private:
  std::vector<Flow*> flows_;
  protocol::IndexSet awake_;  // places; there may be room for one more
  std::size_t next_ = 0;      // behind the last one that was served: the next round begins there
};

template <typename Leaves, typename Moved>
void FlowRotation::remove_if(Leaves&& leaves, Moved&& moved) {
  std::size_t stay = 0;
  std::size_t next = 0;
  for (std::size_t place = 0; place < flows_.size(); ++place) {
    if (place == next_) next = stay;
    Flow& flow = *flows_[place];
    const bool is_awake = awake_.contains(place);
    awake_.erase(place);
    if (leaves(flow)) continue;
    if (is_awake) awake_.insert(stay);
    flows_[stay] = &flow;
    moved(flow, stay++);
  }
  flows_.resize(stay);
  awake_.resize(stay);
  next_ = next < stay ? next : 0;
}

template <typename VisitFlow>
unsigned FlowRotation::serve(unsigned limit, VisitFlow&& visit) {
  unsigned served = 0;
  std::size_t at = next_;
  // Places passed since something was served.
  std::size_t passed = 0;
  while (served < limit && !awake_.empty() && passed < flows_.size()) {
    const std::size_t place = awake_.next(at);
    if (place == awake_.size()) {
      passed += flows_.size() - at;
      at = 0;
      continue;
    }
    passed += place - at + 1;
    at = place + 1 == flows_.size() ? 0 : place + 1;
    const Visit found = visit(*flows_[place]);
    if (found == Visit::nothing) awake_.erase(place);
    if (found != Visit::served) continue;
    ++served;
    passed = 0;
    next_ = at;
  }
  return served;
}

template <typename VisitFlow>
void FlowRotation::for_each_awake(VisitFlow&& visit) {
  for (std::size_t place = awake_.next(0); place < flows_.size(); place = awake_.next(place + 1)) {
    if (visit(*flows_[place]) == Visit::nothing) awake_.erase(place);
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_ROTATION_H_
