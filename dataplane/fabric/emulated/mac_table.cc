#include "dataplane/fabric/emulated/mac_table.h"

#include <bit>
#include <stdexcept>
#include <string>

namespace gradcube::dataplane {

namespace {
constexpr std::uint64_t kMacLimit = std::uint64_t{1} << 48;
constexpr std::uint64_t kGroupBit = std::uint64_t{1} << 40;
constexpr std::size_t kMaxAddresses = std::size_t{1} << 22;
}  // namespace

MacTable::MacTable(const std::vector<std::pair<std::uint64_t, std::uint16_t>>& ports_by_mac)
    : mask_(std::bit_ceil(2 * ports_by_mac.size() + 2) - 1), slots_(mask_ + 1) {
  if (ports_by_mac.size() > kMaxAddresses) {
    throw std::runtime_error("a switch has at most " + std::to_string(kMaxAddresses) +
                             " addresses");
  }
  for (const auto& [mac, port] : ports_by_mac) {
    if (mac >= kMacLimit || (mac & kGroupBit) != 0) {
      throw std::runtime_error("a switch port's address must be a unicast MAC of 48 bits, not " +
                               std::to_string(mac));
    }
    std::uint64_t slot = first_slot(mac);
    while (slots_[slot].mac != kEmpty) {
      if (slots_[slot].mac == mac) {
        throw std::runtime_error("one MAC address is given for two ports of one switch");
      }
      slot = (slot + 1) & mask_;
    }
    slots_[slot] = Slot{mac, port};
  }
}

}  // namespace gradcube::dataplane
