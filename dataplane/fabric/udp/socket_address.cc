#include "dataplane/fabric/udp/socket_address.h"

#include <arpa/inet.h>
#include <cstring>

namespace gradcube::dataplane {

SocketAddress socket_address(const control::HostAddress& host) {
  SocketAddress address;
  std::memset(&address, 0, sizeof address);
  if (host.is_v6) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(host.udp_port);
    std::memcpy(&address.v6.sin6_addr, host.bytes.data(), sizeof address.v6.sin6_addr);
  } else {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(host.udp_port);
    std::memcpy(&address.v4.sin_addr, host.bytes.data(), sizeof address.v4.sin_addr);
  }
  return address;
}

socklen_t bytes_of(const SocketAddress& address) {
  return address.any.sa_family == AF_INET6 ? sizeof address.v6 : sizeof address.v4;
}

control::HostAddress host_address(const SocketAddress& address, socklen_t bytes) {
  control::HostAddress host;
  if (bytes < sizeof address.any.sa_family || bytes < bytes_of(address)) return host;
  if (address.any.sa_family == AF_INET6) {
    host.is_v6 = true;
    host.udp_port = ntohs(address.v6.sin6_port);
    std::memcpy(host.bytes.data(), &address.v6.sin6_addr, sizeof address.v6.sin6_addr);
  } else if (address.any.sa_family == AF_INET) {
    host.udp_port = ntohs(address.v4.sin_port);
    std::memcpy(host.bytes.data(), &address.v4.sin_addr, sizeof address.v4.sin_addr);
  }
  return host;
}

}  // namespace gradcube::dataplane
