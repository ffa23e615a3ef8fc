// An address of a host (control/settings/host_list.h) as the kernel has it.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_SOCKET_ADDRESS_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_SOCKET_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include "control/settings/host_list.h"

namespace gradcube::dataplane {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

SocketAddress socket_address(const control::HostAddress& host);
socklen_t bytes_of(const SocketAddress& address);

// The other way round, with a UDP port of 0, which no host has, if it is of neither family or
// shorter than its family's.
control::HostAddress host_address(const SocketAddress& address, socklen_t bytes);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_SOCKET_ADDRESS_H_
