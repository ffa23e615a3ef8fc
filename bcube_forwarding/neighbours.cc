#include "bcube_forwarding/neighbours.h"

#include <stdexcept>
#include <string>

namespace gradcube::bcube {

LinkAddress embedded_link_address(unsigned level, ServerId server) {
  LinkAddress address;
  address.mac = {0x02,
                 0x47,
                 static_cast<std::uint8_t>(level),
                 static_cast<std::uint8_t>(server >> 16),
                 static_cast<std::uint8_t>(server >> 8),
                 static_cast<std::uint8_t>(server)};
  address.ip = std::uint32_t{10} << 24 | (level & 0xff) << 16 | (server & 0xffff);
  return address;
}

bool are_neighbours(const AddressSpace& space, ServerId one, ServerId other) {
  unsigned differing = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    if (space.digit(one, level) != space.digit(other, level)) ++differing;
  }
  return differing == 1;
}

NeighbourTable::NeighbourTable(const AddressSpace& space, ServerId self,
                               std::span<const unsigned> ports)
    : space_(space), self_(self) {
  if (!space.contains(self)) {
    throw std::invalid_argument("server " + std::to_string(self) + " is not among the " +
                                std::to_string(space.servers()) + " servers");
  }
  if (ports.size() != space.levels()) {
    throw std::invalid_argument(
        "a server needs one port per level: " + std::to_string(space.levels()) + ", not " +
        std::to_string(ports.size()));
  }
  for (unsigned level = 0; level < space.levels(); ++level) {
    own_digits_[level] = space.digit(self, level);
    ports_[level] = ports[level];
    first_[level] = static_cast<std::uint32_t>(rows_.size());
    for (unsigned digit = 0; digit < space.radix(level); ++digit) {
      if (digit == own_digits_[level]) continue;
      const ServerId server = space.with_digit(self, level, digit);
      rows_.push_back({server, level, digit, ports[level], embedded_link_address(level, server)});
    }
  }
}

std::uint32_t NeighbourTable::row(unsigned level, unsigned digit) const {
  if (level >= space_.levels() || digit >= space_.radix(level) || digit == own_digits_[level]) {
    return kNoRow;
  }
  return first_[level] + digit - (digit > own_digits_[level] ? 1 : 0);
}

const Neighbour* NeighbourTable::find(unsigned level, unsigned digit) const {
  const std::uint32_t index = row(level, digit);
  return index == kNoRow ? nullptr : &rows_[index];
}

bool NeighbourTable::is_neighbour(unsigned level, ServerId server) const {
  if (level >= space_.levels() || !space_.contains(server) || server == self_) return false;
  return space_.with_digit(server, level, own_digits_[level]) == self_;
}

}  // namespace gradcube::bcube
