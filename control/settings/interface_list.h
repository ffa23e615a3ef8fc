// The network interfaces that the servers of a cluster have for their ports, where these are cabled
// to each other: a row for each server that there is, in the order of their numbers, [0,0] first.
//
//     eth1,eth2 eth2,eth1        an interface for each port, as `gradcubed --interfaces` takes them
//
// Pure functions; any thread. Errors are UsageErrors.
#ifndef GRADCUBE_CONTROL_SETTINGS_INTERFACE_LIST_H_
#define GRADCUBE_CONTROL_SETTINGS_INTERFACE_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/topology.h"

namespace gradcube::control {

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

#endif  // GRADCUBE_CONTROL_SETTINGS_INTERFACE_LIST_H_
