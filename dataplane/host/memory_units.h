// What the memory of packets and of EAL comes to, where a fabric's need is computed before it
// starts (dataplane/daemon/packet_sizing.h, dataplane/fabric/port_driver.h).
#ifndef GRADCUBE_DATAPLANE_HOST_MEMORY_UNITS_H_
#define GRADCUBE_DATAPLANE_HOST_MEMORY_UNITS_H_

#include <cstdint>

namespace gradcube::dataplane {

// What a packet takes beside its frame: its mbuf, its headroom, and the mempool's header.
inline constexpr std::uint64_t kPacketBytes = 512;
// EAL's heap loses some memory to alignment, and to elements at the ends of its pages: one more
// byte for every so many.
inline constexpr std::uint64_t kHeapReserve = 4;
// What EAL itself and its per-lcore data take, about.
inline constexpr std::uint64_t kEalMegabytes = 64;
inline constexpr std::uint64_t kMegabyte = 1'000'000;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_MEMORY_UNITS_H_
