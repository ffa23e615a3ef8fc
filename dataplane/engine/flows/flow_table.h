// Finds a flow by what a frame says of itself: its job, lane, thread, stage, step and the server
// that sent it. It does not matter through which port the frame came.
//
// An open-addressed hash table. find() and remove() take constant time and allocate nothing; add()
// belongs to set-up. Every key is hostile: one that is not in the table costs a few
// probes, because at most half of the places are taken and job ids are not guessed.
//
// Owned and used by one engine.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_TABLE_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bcube_forwarding/address.h"
#include "protocol/job_id.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

struct Flow;

class FlowTable {
 public:
  // All of a frame's fields that name its flow, in 64 bits; never 0, as no job's id is 0.
  static std::uint64_t key(const protocol::TransportHeader& transport, bcube::ServerId source) {
    return std::uint64_t{transport.job} << 32 | std::uint64_t{source & 0xffffU} << 16 |
           std::uint64_t{transport.lane} << 13 | std::uint64_t{transport.step} << 8 |
           std::uint64_t{transport.stage == protocol::Stage::broadcast} << 7 | transport.thread;
  }
  static_assert(protocol::kMaxLanes <= 8 && protocol::kMaxFlowSteps <= 32);
  static_assert(protocol::kMaxThreads <= 128 && bcube::kMaxServers <= 1 << 16);

  // Null if there is none.
  Flow* find(std::uint64_t key) const {
    for (std::size_t place = hash(key);; ++place) {
      const Entry& entry = entries_[place & mask_];
      if (entry.key == key) return entry.flow;
      if (entry.flow == nullptr) return nullptr;
    }
  }

  // The key must not be in the table yet. Where there is no memory it is not there.
  void add(std::uint64_t key, Flow& flow);
  // Does nothing if it is not there.
  void remove(std::uint64_t key);

 private:
  struct Entry {
    std::uint64_t key = 0;
    Flow* flow = nullptr;  // null: this place is free
  };

  std::size_t hash(std::uint64_t key) const {
    // Fibonacci hashing: the product's high bits depend on all bits of the key.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> 32);
  }
  void grow();

  std::vector<Entry> entries_ = std::vector<Entry>(16);  // a power of two
  std::size_t mask_ = 15;
  std::size_t count_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_TABLE_H_
