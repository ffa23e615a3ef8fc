#include "bcube_forwarding/neighbours.h"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>

#include "bcube_forwarding/route.h"

namespace gradcube::bcube {

namespace {

constexpr std::uint32_t kBenchmarkNetwork = std::uint32_t{198} << 24 | std::uint32_t{18} << 16;
constexpr unsigned kHostBits = 17;
constexpr unsigned kMaxPorts = 2 * kMaxLevels;  // a torus has two for each level
static_assert(kMostRails <= kMaxPorts);
static_assert(kMaxPorts * kMaxAddressedServers <= 1U << kHostBits,
              "every port of every server has an address of 198.18.0.0/15");

}  // namespace

LinkAddress embedded_link_address(unsigned port, ServerId server) {
  LinkAddress address;
  address.mac = {0x02,
                 0x47,
                 static_cast<std::uint8_t>(port),
                 static_cast<std::uint8_t>(server >> 16),
                 static_cast<std::uint8_t>(server >> 8),
                 static_cast<std::uint8_t>(server)};
  address.ip = kBenchmarkNetwork | (port * kMaxAddressedServers + server);
  return address;
}

bool are_neighbours(const AddressSpace& space, ServerId one, ServerId other) {
  return distance(space, one, other) == 1;
}

std::vector<ServerId> next_in_lines(const AddressSpace& space, ServerId self,
                                    const std::vector<ServerId>& servers) {
  const std::set<ServerId> among(servers.begin(), servers.end());
  std::set<ServerId> next;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned radix = space.radix(level);
    const unsigned digit = space.digit(self, level);
    // Each way around the line until one of them is met; a switch has all at the same distance.
    for (const unsigned way : {1u, radix - 1}) {
      for (unsigned at = (digit + way) % radix; at != digit; at = (at + way) % radix) {
        const ServerId server = space.with_digit(self, level, at);
        if (!among.contains(server)) continue;
        next.insert(server);
        if (space.cabled()) break;
      }
    }
  }
  return {next.begin(), next.end()};
}

std::vector<ServerId> next_to(const AddressSpace& space, ServerId self,
                              const std::vector<ServerId>& servers) {
  std::vector<ServerId> next = next_in_lines(space, self, servers);
  if (are_grid(space, servers)) return next;
  std::set<ServerId> all(next.begin(), next.end());
  const std::set<ServerId> among(servers.begin(), servers.end());
  const auto above = among.upper_bound(self);
  const auto below = among.lower_bound(self);
  all.insert(above == among.end() ? *among.begin() : *above);
  all.insert(below == among.begin() ? *among.rbegin() : *std::prev(below));
  all.erase(self);
  return {all.begin(), all.end()};
}

bool are_grid(const AddressSpace& space, std::span<const ServerId> servers) {
  std::size_t combinations = 1;
  for (unsigned level = 0; level < space.levels(); ++level) {
    std::bitset<kMaxRadix> used;
    for (const ServerId server : servers) used.set(space.digit(server, level));
    combinations *= used.count();
  }
  return combinations == servers.size();
}

NeighbourTable::NeighbourTable(const AddressSpace& space, ServerId self)
    : space_(space), self_(self) {
  if (!space.contains(self)) {
    throw std::invalid_argument("server " + std::to_string(self) + " is not among the " +
                                std::to_string(space.servers()) + " servers");
  }
  if (space.addresses() > kMaxAddressedServers) {
    throw std::invalid_argument(
        "the ports of " + std::to_string(space.addresses()) +
        " servers have no IPv4 addresses: 198.18.0.0/15 has room for those of " +
        std::to_string(kMaxAddressedServers));
  }
  for (unsigned port = 0; port < space.ports(self); ++port) {
    const unsigned level = space.level_of_port(port);
    const unsigned own = own_digits_[level] = space.digit(self, level);
    first_.push_back(static_cast<std::uint32_t>(rows_.size()));
    row_of_[level].resize(space.hop_digits(level), kNoRow);
    for (unsigned digit = 0; digit < space.hop_digits(level); ++digit) {
      if (!space.joins(level, own, digit) || space.port_of(self, level, digit) != port) continue;
      const ServerId server = space.with_digit(self, level, digit);
      if (space.is_absent(server)) continue;
      if (digit / space.radix(level) >= space.rails(self, server)) continue;
      row_of_[level][digit] = static_cast<std::uint32_t>(rows_.size());
      const unsigned far = space.port_of(server, level, space.digit_back(self, level, digit));
      rows_.push_back({server, level, digit, port, embedded_link_address(far, server),
                       embedded_link_address(port, self)});
    }
  }
  first_.push_back(static_cast<std::uint32_t>(rows_.size()));
}

const Neighbour* NeighbourTable::find(unsigned level, unsigned digit) const {
  if (level >= space_.levels() || digit >= space_.hop_digits(level)) return nullptr;
  const std::uint32_t row = row_of_[level][digit];
  return row == kNoRow ? nullptr : &rows_[row];
}

bool NeighbourTable::is_behind(unsigned port, ServerId server) const {
  if (port + 1 >= first_.size()) return false;
  const std::span<const Neighbour> all = behind(port);
  return std::any_of(all.begin(), all.end(),
                     [server](const Neighbour& each) { return each.server == server; });
}

}  // namespace gradcube::bcube
