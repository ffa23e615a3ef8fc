// A switch's forwarding table: from a destination MAC, as a 48-bit number, to an output port.
//
// It is filled once, at construction, from the cluster's plan (a Gradcube port has the address
// 02:47:<level>:<server, 24 bits>). The switch learns nothing, so a frame cannot poison the table.
// Open addressing in a table that is at most half full. Any thread may look up.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_MAC_TABLE_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_MAC_TABLE_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace gradcube::dataplane {

class MacTable {
 public:
  static constexpr std::uint16_t kUnknown = UINT16_MAX;

  // Throws std::runtime_error if a MAC is listed twice or is not a unicast address of 48 bits.
  explicit MacTable(const std::vector<std::pair<std::uint64_t, std::uint16_t>>& ports_by_mac);

  // The output port, or kUnknown.
  std::uint16_t find(std::uint64_t mac) const {
    std::uint64_t slot = first_slot(mac);
    while (slots_[slot].mac != mac) {
      if (slots_[slot].mac == kEmpty) return kUnknown;
      slot = (slot + 1) & mask_;
    }
    return slots_[slot].port;
  }

 private:
  static constexpr std::uint64_t kEmpty = UINT64_MAX;

  struct Slot {
    std::uint64_t mac = kEmpty;
    std::uint16_t port = kUnknown;
  };

  std::uint64_t first_slot(std::uint64_t mac) const {
    return ((mac * 0x9E3779B97F4A7C15) >> 40) & mask_;
  }

  std::uint64_t mask_;
  std::vector<Slot> slots_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_MAC_TABLE_H_
