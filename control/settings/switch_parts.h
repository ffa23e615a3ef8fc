// How the emulated switches of a cluster are dealt to processes, where they are not in that of all
// servers: level by level in the order of their servers, and each process gets switches as long as
// it has ports for all servers of one that are not absent. So who knows the topology knows which
// process has the switch at a server's port. A cable of a torus is a switch with two ports
// (embedded_fabric.h).
//
// A pure value.
#ifndef GRADCUBE_CONTROL_SETTINGS_SWITCH_PARTS_H_
#define GRADCUBE_CONTROL_SETTINGS_SWITCH_PARTS_H_

#include <cstddef>
#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::control {

// Of switches in one process: DPDK, as Debian builds it, has room for so many devices.
inline constexpr unsigned kMaxSwitchProcessPorts = 32;

class SwitchParts {
 public:
  // most_ports: that a process can have. Throws a UsageError if a switch has more.
  SwitchParts(const bcube::AddressSpace& space, unsigned most_ports);

  unsigned count() const { return parts_; }
  // Which of them has the switch that the port leads to.
  unsigned of(bcube::ServerId server, unsigned port) const {
    return of_port_[std::size_t{server} * ports_ + port];
  }

 private:
  unsigned ports_;
  unsigned parts_ = 1;
  std::vector<unsigned> of_port_;  // by server and port
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_SWITCH_PARTS_H_
