// How much memory this process takes.
//
// Any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_RESIDENT_MEMORY_H_
#define GRADCUBE_DATAPLANE_DAEMON_RESIDENT_MEMORY_H_

#include <cstdint>

namespace gradcube::dataplane {

// Bytes of memory that this process itself takes: what is resident, packet memory included, but for
// the trainers' shared heaps.
std::uint64_t own_resident_bytes();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_RESIDENT_MEMORY_H_
