// One socket of UDP, at one address of this host. It never waits, sets the bit that forbids routers
// to cut a datagram, says that it understands congestion marks, and tells of those that come.
//
// With several queues a port has a socket for each at the same address, and the kernel runs a
// program on each datagram that says which one gets it: by the source port of its frame, as
// thread_of() has it. A socket that is alone lets the kernel put datagrams of one sender together
// (UDP_GRO). With several it may not: datagrams for different queues would come in one piece.
//
// No right is needed. Owns the descriptor, which lives in the network namespace of the thread that
// made it.
//
// Threads: one makes it and takes its drops; any may use the descriptor. Errors are
// control::SetupError, in words about the address.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_SOCKET_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_SOCKET_H_

#include <cstdint>

#include "control/base/descriptor.h"
#include "control/settings/host_list.h"

namespace gradcube::dataplane {

class UdpSocket {
 public:
  enum class Address : std::uint8_t { alone, shared };

  // At this address, where no other is, or others of this process that share it. bits_per_second: a
  // queueing discipline that paces (fq) lets it send no faster; 0: not limited.
  UdpSocket(const control::HostAddress& own, Address address, std::uint64_t bits_per_second = 0);

  int descriptor() const { return descriptor_.get(); }

  // Of all sockets at this address, which are so many: they get datagrams in the order in which
  // they were made.
  void spread_over(std::uint16_t queues);

  // Datagrams that found the receive buffer full since the last call, or had a wrong checksum.
  std::uint32_t take_drops();

 private:
  control::Descriptor descriptor_;
  std::uint32_t drops_ = 0;  // as the kernel counts them
};

// The longest IP packet that passes from one address to another, as far as this host knows. Throws
// if no way leads there.
std::uint32_t path_mtu(const control::HostAddress& from, const control::HostAddress& to);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_SOCKET_H_
