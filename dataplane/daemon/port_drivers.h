// The kinds of ports that a server alone in its process can have: the table of fabrics whose other
// ends are in other processes. Another one is a line in port_drivers.cc (CONTRIBUTING.md).
#ifndef GRADCUBE_DATAPLANE_DAEMON_PORT_DRIVERS_H_
#define GRADCUBE_DATAPLANE_DAEMON_PORT_DRIVERS_H_

#include <span>

#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

std::span<const PortDriver* const> port_drivers();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PORT_DRIVERS_H_
