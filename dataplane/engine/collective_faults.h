// What an executor finds wrong with a collective. The engine reports it, and the job is reset.
#ifndef GRADCUBE_DATAPLANE_ENGINE_COLLECTIVE_FAULTS_H_
#define GRADCUBE_DATAPLANE_ENGINE_COLLECTIVE_FAULTS_H_

#include <cstdint>

#include "aggregation/element.h"
#include "bcube_forwarding/address.h"

namespace gradcube::dataplane {

// A neighbour's contribution that does not fit this server's request.
struct Disagreement {
  unsigned lane = 0;
  std::uint64_t collective = 0;  // its number in the lane
  bcube::ServerId peer = 0;
  unsigned thread = 0;
  unsigned step = 0;
};

// An average of integers whose sum does not fit in the type, in one segment.
struct Overflow {
  unsigned lane = 0;
  std::uint64_t collective = 0;  // its number in the lane
  unsigned thread = 0;
  unsigned step = 0;
  aggregation::DataType dtype{};
  std::uint64_t first_element = 0;  // of the trainer's buffer
  std::uint64_t elements = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_COLLECTIVE_FAULTS_H_
