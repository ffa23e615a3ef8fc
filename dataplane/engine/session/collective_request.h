// A collective that a trainer has submitted, checked.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_COLLECTIVE_REQUEST_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_COLLECTIVE_REQUEST_H_

#include <cstdint>

#include "aggregation/reproducible.h"
#include "control/plan/collective_kind.h"
#include "trainer/shared_layout.h"

namespace gradcube::dataplane {

struct CollectiveRequest {
  std::uint64_t number = 0;   // its place in its lane: 1, 2, 3, ...
  std::uint64_t request = 0;  // the trainer's name for it
  unsigned lane = 0;
  control::CollectiveKind kind{};
  std::uint32_t root = 0;  // a rank; 0 where the kind has none
  shared::Gathered gathered{};
  std::uint8_t* buffer = nullptr;
  std::uint64_t count = 0;  // elements, as the trainer gave it
  std::uint64_t bytes = 0;  // of the whole buffer
  aggregation::DataType dtype{};
  aggregation::Operation operation{};
  unsigned parts = 1;            // carriers of each element
  aggregation::Carrier carrier;  // what is in the buffer and is added; mostly dtype and operation
  bool agreed = true;            // whether all trainers of the server have submitted the same
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_COLLECTIVE_REQUEST_H_
