// How far each server has come with each chunk, at a root without trainers whose hub is
// asynchronous: a server's gradients are stepped with as soon as they are here, by themselves, and
// the new weights go back to that server alone. No round waits for all.
//
// Staleness (Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter
// Server", NIPS 2013) bounds how many rounds of a chunk a server may be ahead of the slowest one:
// what would be further ahead is held until others have come.
//
// HubExchange (hub_exchange_stale.cc) alone uses it. One thread. Nothing allocates but the
// constructor.
#ifndef GRADCUBE_DATAPLANE_HUB_STALE_PEERS_H_
#define GRADCUBE_DATAPLANE_HUB_STALE_PEERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregation/optimizer_step.h"

namespace gradcube::dataplane {

class StalePeers {
 public:
  // A server's rounds of a chunk.
  struct Peer {
    std::uint32_t opened = 0;   // of which something has arrived
    std::uint32_t done = 0;     // that were stepped with; at most one less
    std::uint32_t stepped = 0;  // segments of the last one opened
    std::uint32_t digest = 0;   // the same round's: its learning rate
    bool alone = false;         // the same round: not one of all servers together
    // Nothing of the same round, which is one of all servers, has come from this one yet: its slots
    // have the results of the round before.
    bool has_earlier_results = false;
    bool has_numbers = false;  // of the same round, from its first segment that is stepped with on
    aggregation::OptimizerStep numbers{};
  };

  // landings: of all chunks, the segments of all peers.
  StalePeers(std::uint32_t staleness, std::size_t chunks, std::size_t peers, std::size_t landings)
      : staleness_(staleness),
        of_chunk_(peers),
        peers_(chunks * peers),
        steps_(chunks),
        stepped_(landings) {}

  std::span<Peer> peers(std::size_t chunk) {
    return {peers_.data() + chunk * of_chunk_, of_chunk_};
  }
  Peer& peer(std::size_t chunk, std::size_t place) { return peers_[chunk * of_chunk_ + place]; }
  const Peer& peer(std::size_t chunk, std::size_t place) const {
    return peers_[chunk * of_chunk_ + place];
  }

  // Steps that the optimizer has taken with the chunk.
  std::uint64_t& steps(std::size_t chunk) { return steps_[chunk]; }

  // Whether the round that the server has opened last is not too far ahead.
  bool may_step(std::size_t chunk, const Peer& peer) {
    const std::span<Peer> all = peers(chunk);
    const auto slowest = std::min_element(
        all.begin(), all.end(), [](const Peer& a, const Peer& b) { return a.done < b.done; });
    return peer.opened - 1 - slowest->done <= staleness_;
  }
  // Whether all have done as many rounds, and none has begun another.
  bool are_even(std::size_t chunk) {
    const std::span<Peer> all = peers(chunk);
    return std::all_of(all.begin(), all.end(), [&](const Peer& peer) {
      return peer.opened == all.front().opened && peer.done == peer.opened;
    });
  }

  // By the place where a segment is landed: whether it was stepped with.
  bool stepped(std::uint64_t landing) const { return stepped_[landing]; }
  void set_stepped(std::uint64_t landing, bool stepped) { stepped_[landing] = stepped; }

  static std::uint64_t needs(std::size_t chunks, std::size_t peers, std::size_t landings) {
    return chunks * (peers * sizeof(Peer) + sizeof(std::uint64_t)) + landings / 8;
  }
  std::uint64_t memory() const { return needs(steps_.size(), of_chunk_, stepped_.size()); }

 private:
  std::uint32_t staleness_;
  std::size_t of_chunk_;
  std::vector<Peer> peers_;  // by chunk and place among a step's sources
  std::vector<std::uint64_t> steps_;
  std::vector<bool> stepped_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_STALE_PEERS_H_
