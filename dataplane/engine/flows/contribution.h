// What a segment from a neighbour brings: bytes to add or to write, and the collective that the
// neighbour says they belong to.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_CONTRIBUTION_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_CONTRIBUTION_H_

#include <cstdint>
#include <rte_mbuf.h>

namespace gradcube::dataplane {

// How a request travels in a segment header, for the neighbours to compare with their own.
struct CollectiveSignature {
  std::uint8_t type_and_operation = 0;
  std::uint32_t count = 0;  // of elements, folded to 32 bits: the number itself below 2^32
  std::uint16_t root = 0;   // a rank; of an all_gather what it gathers; else 0
  std::uint8_t kind = 0;
  std::uint32_t collective = 0;  // the low 32 bits of its number in the lane
  friend bool operator==(const CollectiveSignature&, const CollectiveSignature&) = default;
};

struct Contribution {
  rte_mbuf* packet = nullptr;  // holds the payload
  const std::uint8_t* payload = nullptr;
  std::uint64_t sequence = 0;  // in its flow; set where it is held
  std::uint16_t bytes = 0;
  CollectiveSignature signature;  // as its sender sees the collective
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_CONTRIBUTION_H_
