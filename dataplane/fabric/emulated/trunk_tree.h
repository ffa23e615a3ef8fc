// The shared links inside a tree of emulated switches: its TRUNKS, which the topology calls uplinks
// (here, a server's own link is one). All servers below a switch share the trunk that leads from it
// to the next level, and the one that leads back.
//
// A tree is one switch to its servers, of which a frame between servers under different switches
// passes the trunks between them, each with a queue, a rate and a delay of its own, as it would on
// its way from switch to switch: up to the lowest switch that has both below it, and down again.
//
// Time is virtual, as egress_queue.h says. Frames enter and leave in the order of their times.
//
// Owns the packets inside. One thread: the shard's.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_TRUNK_TREE_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_TRUNK_TREE_H_

#include <cstddef>
#include <cstdint>
#include <rte_mbuf.h>
#include <vector>

#include "dataplane/fabric/emulated/egress_queue.h"
#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/emulated/mac_table.h"
#include "dataplane/fabric/emulated/switch_counters.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/clock.h"

namespace gradcube::dataplane {

// The trunks from the switches of one level to the next.
struct TrunkLevel {
  std::uint32_t places = 0;  // below each of them
  LinkProfile link{};        // of each, in both directions; with a rate
  std::uint32_t frames = 0;  // that its queue holds at most: the switch knows
};

class TrunkTree {
 public:
  // places[p] is where port p is: those below a trunk follow each other. The lowest level first.
  // first_express: as an EgressQueue has it. `macs` outlives it.
  TrunkTree(const std::vector<TrunkLevel>& levels, const std::vector<std::uint32_t>& places,
            std::uint16_t first_express, const MacTable& macs, rte_mempool* clones);

  // Takes a frame that passes trunks; false: one switch joins the two ports, and it passes none.
  bool enter(rte_mbuf* packet, std::uint16_t in, std::uint16_t out, std::uint16_t queue,
             std::int64_t arrival) {
    if (highest_level(in, out) == 0) return false;
    trunks_[number_of(1, in, Way::up)].admit(packet, queue, arrival, in);
    return true;
  }

  // Moves what is due at `until` from trunk to trunk, and calls leave(packet, in, out, queue,
  // arrival) for what has passed the last one. It has entered before nothing that comes later.
  template <typename Leave>
  void pass(std::int64_t until, Leave&& leave) {
    for (;;) {
      const std::size_t first = first_due();
      if (trunks_[first].next_due() > until) return;
      const FrameInLine frame = trunks_[first].take();
      const std::uint16_t out = macs_->find(destination_mac(frame.packet));
      const std::size_t next = next_trunk(first, frame.from, out);
      if (next == kNone) {
        leave(frame.packet, frame.from, out, frame.queue, frame.time);
      } else {
        trunks_[next].admit(frame.packet, frame.queue, frame.time, frame.from);
      }
    }
  }

  std::int64_t next_due() const { return trunks_[first_due()].next_due(); }

  // Which trunk it is: of the switch above these places, up to the next level or down from it.
  struct TrunkAt {
    unsigned level = 0;  // from 1
    std::uint32_t first_place = 0;
    std::uint32_t last_place = 0;
    bool up = false;
  };
  std::size_t trunks() const { return trunks_.size(); }
  TrunkAt at(std::size_t trunk) const;
  const SwitchPortCounters& counters(std::size_t trunk) const { return counters_[trunk]; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  enum class Way : std::uint8_t { up, down };

  unsigned group(std::uint16_t port, unsigned level) const {
    return places_[port] / places_below_[level - 1];
  }
  // Of the trunks between two ports; 0: there is none.
  unsigned highest_level(std::uint16_t in, std::uint16_t out) const {
    unsigned level = 0;
    while (level < places_below_.size() && group(in, level + 1) != group(out, level + 1)) ++level;
    return level;
  }
  std::size_t number_of(unsigned level, std::uint16_t port, Way way) const {
    return first_[level - 1] + 2 * std::size_t{group(port, level)} + (way == Way::up ? 0 : 1);
  }
  std::size_t first_due() const;
  std::size_t next_trunk(std::size_t trunk, std::uint16_t in, std::uint16_t out) const;

  const MacTable* macs_;
  std::vector<std::uint32_t> places_;        // by port
  std::vector<std::uint32_t> places_below_;  // [level - 1]
  std::vector<std::size_t> first_;           // [level - 1]: of its trunks
  std::vector<SwitchPortCounters> counters_;
  std::vector<EgressQueue> trunks_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_TRUNK_TREE_H_
