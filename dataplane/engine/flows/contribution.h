// What a segment from a neighbour brings: bytes to add or to write, and the collective that the
// neighbour says they belong to.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_CONTRIBUTION_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_CONTRIBUTION_H_

#include <cstdint>
#include <rte_mbuf.h>

#include "protocol/wire.h"

namespace gradcube::dataplane {

using protocol::CollectiveSignature;

struct Contribution {
  rte_mbuf* packet = nullptr;  // holds the payload
  const std::uint8_t* payload = nullptr;
  std::uint64_t sequence = 0;  // in its flow; set where it is held
  std::uint16_t bytes = 0;
  CollectiveSignature signature;  // as its sender sees the collective
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_CONTRIBUTION_H_
