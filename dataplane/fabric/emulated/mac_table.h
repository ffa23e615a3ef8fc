// A switch's forwarding table: from a destination MAC, as a 48-bit number, to an output port.
//
// It is filled once, at the switch's construction, from the cluster's plan (a Gradcube port has the
// address 02:47:<level>:<server, 24 bits>). The switch learns nothing, so a frame cannot poison the
// table. Any thread may look up.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_MAC_TABLE_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_MAC_TABLE_H_

#include <cstdint>

#include "dataplane/host/key_table.h"

namespace gradcube::dataplane {

inline constexpr std::uint16_t kUnknownMac = UINT16_MAX;
using MacTable = KeyTable<std::uint16_t, kUnknownMac>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_MAC_TABLE_H_
