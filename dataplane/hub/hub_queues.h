// What waits in a hub's exchange: keys for their turn, and chunks for room in a stream. For
// HubExchange alone, which allocates all of it at construction.
#ifndef GRADCUBE_DATAPLANE_HUB_HUB_QUEUES_H_
#define GRADCUBE_DATAPLANE_HUB_HUB_QUEUES_H_

#include <cstdint>
#include <vector>

namespace gradcube::dataplane {

// Keys in the order in which they came, each at most once.
struct HubKeyRing {
  std::vector<std::uint32_t> keys;
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  void add(std::uint32_t key) { keys[(first + count++) % keys.size()] = key; }
  void remove_first() {
    first = (first + 1) % static_cast<std::uint32_t>(keys.size());
    --count;
  }
};

// To one peer in one stage and step.
struct HubSendStream {
  std::vector<std::uint32_t> ready;  // by chunk: the positions below can be sent
  std::vector<std::uint32_t> sent;   // by chunk: the positions below have been taken
  std::vector<std::uint32_t> queue;  // a ring of all chunks with more ready than sent
  std::vector<bool> queued;          // by chunk
  std::uint32_t first = 0;
  std::uint32_t queued_chunks = 0;
  std::uint64_t segments = 0;  // that are ready and have not been taken
  bool woken = false;          // it is among those that have become longer

  // A round of the chunk begins anew.
  void reset(std::size_t chunk) {
    segments -= ready[chunk] - sent[chunk];
    ready[chunk] = 0;
    sent[chunk] = 0;
  }
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUB_QUEUES_H_
