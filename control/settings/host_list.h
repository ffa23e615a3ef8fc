// What settings list for the servers of a cluster: a row for each server that there is, in the
// order of their numbers, [0,0] first.
//
// Hosts are the addresses at which servers reach each other where their links are UDP:
//
//     10.0.0.1 10.0.0.2 10.0.0.3                 one for all ports of the server
//     10.0.0.1,10.1.0.1 10.0.0.2,10.1.0.2        one for each port, level 0 first
//     10.0.0.1:5000 10.0.0.1:6000                with ports of UDP, for several servers on a host
//     fd00::1 [fd00::2]:5000                     the same of IPv6
//
// A server's port p listens at the UDP port p above the one that its address names. So ports of one
// server may share an address, as levels do that share a NIC.
//
// Interfaces are the network interfaces that servers have for their ports, where these are cabled
// to each other:
//
//     eth1,eth2 eth2,eth1        one for each port, as `gradcubed --interfaces` takes them
//
// Pure functions; any thread. Errors are UsageErrors.
#ifndef GRADCUBE_CONTROL_SETTINGS_HOST_LIST_H_
#define GRADCUBE_CONTROL_SETTINGS_HOST_LIST_H_

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/topology.h"

namespace gradcube::control {

struct HostAddress {
  std::array<std::uint8_t, 16> bytes{};  // of IPv4 the first four
  bool is_v6 = false;
  std::uint16_t udp_port = 0;  // of the server's port 0

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes this 0 for a pointer.
  auto operator<=>(const HostAddress&) const = default;
};

// Where an address names none.
inline constexpr std::uint16_t kDefaultUdpPort = 47330;

using HostRow = std::vector<HostAddress>;
using HostList = std::vector<HostRow>;

// Refuses what is no address of one host. `where` begins the message.
HostList parse_hosts(std::string_view text, std::string_view where);
// What parse_hosts() reads, the same for all ways to write it.
std::string hosts_text(const HostList& hosts);
std::string host_text(const HostAddress& address);
std::string ip_text(const HostAddress& address);  // without its UDP port

// Refuses rows that do not fit the servers, addresses of both families, and two ports at one
// address. Rows of no servers fit any topology.
void validate_hosts(const Topology& topology, const HostList& hosts);

// Where a server's port listens: an address with its own UDP port. The list is not empty, and
// fits.
HostAddress host_of_port(const Topology& topology, const HostList& hosts, ServerId server,
                         unsigned port);

using InterfaceList = std::vector<std::vector<std::string>>;

// Refuses what is no name of an interface. `where` begins the message.
InterfaceList parse_interfaces(std::string_view text, std::string_view where);
std::string interfaces_text(const InterfaceList& interfaces);

// Refuses rows that do not fit the servers. Rows of no servers fit any topology.
void validate_interfaces(const Topology& topology, const InterfaceList& interfaces);

// Those of a server. The list is not empty, and fits.
std::vector<std::string> interfaces_of(const Topology& topology, const InterfaceList& interfaces,
                                       ServerId server);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_HOST_LIST_H_
