// How tests find packets that were not given back.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_PACKETS_IN_USE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_PACKETS_IN_USE_H_

#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// Packets of the pool that are out, over the caches of all lcores.
inline unsigned packets_in_use(const PacketPool& pool) { return pool.in_use(); }

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_PACKETS_IN_USE_H_
