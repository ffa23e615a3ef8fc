// The ports at the other ends of a port's links, by their addresses on both sides: who reads a
// frame finds the socket, and who reads a datagram finds the headers of its frame.
//
// Threads: it never changes; any may use it.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PEERS_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PEERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/fabric/udp/socket_address.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

struct UdpPeer {
  bcube::LinkAddress link;  // in frames
  control::HostAddress at;  // of its socket
};

class UdpPeers {
 public:
  static constexpr std::uint16_t kNone = UINT16_MAX;
  using OuterHeaders = std::array<std::uint8_t, protocol::kOuterHeaderBytes>;

  // own: in frames, that of the port.
  UdpPeers(const bcube::LinkAddress& own, const std::vector<UdpPeer>& peers);

  std::size_t size() const { return peers_.size(); }
  // The peer with this MAC, as destination_mac() has it; with this address. kNone: nobody.
  std::uint16_t with_mac(std::uint64_t mac) const;
  std::uint16_t at(const control::HostAddress& address) const;

  const control::HostAddress& address(std::uint16_t peer) const { return peers_[peer].at; }
  const SocketAddress& socket(std::uint16_t peer) const { return peers_[peer].socket; }
  // Of a frame that comes from it, but for lengths, IPv4's checksum and the source port.
  const OuterHeaders& headers(std::uint16_t peer) const { return peers_[peer].headers; }

 private:
  struct Peer {
    control::HostAddress at;
    SocketAddress socket;
    OuterHeaders headers;
  };
  template <typename Key>
  using Index = std::vector<std::pair<Key, std::uint16_t>>;  // ascending

  std::vector<Peer> peers_;
  Index<std::uint64_t> by_mac_;
  Index<control::HostAddress> by_address_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PEERS_H_
