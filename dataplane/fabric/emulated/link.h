// The link between a server and its switch, and the memory of the switch's output port, as they are
// set. link_clock.h keeps the time of a link.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_LINK_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_LINK_H_

#include <cstdint>

namespace gradcube::dataplane {

struct LinkProfile {
  // The rate of each direction, at least 1 Mb/s; 0: not limited.
  std::uint64_t bits_per_second = 0;
  // From the end of sending to arrival, in nanoseconds, for the whole path through the switch;
  // without serialization and queueing.
  std::int64_t delay = 0;
  // Bytes of frames that an output port holds, including the one being sent. A frame that exceeds
  // it is dropped. 0: not bounded.
  std::uint64_t queue_bytes = 0;
  // A frame that raises an output port's bytes above this is marked, if its transport understands
  // marks. 0: never.
  std::uint64_t mark_bytes = 0;

  bool limited() const { return bits_per_second != 0 || queue_bytes != 0; }
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_LINK_H_
