// Ports that are sockets on the loopback interface, each a neighbour of all others, and sockets of
// others that speak to them.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_UDP_PORT_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_UDP_PORT_FIXTURE_H_

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "control/base/descriptor.h"
#include "dataplane/fabric/udp/datagram.h"
#include "dataplane/fabric/udp/socket_address.h"
#include "dataplane/fabric/udp/udp_port.h"
#include "tests/unit/dataplane/fabric/port_frames.h"

namespace gradcube::dataplane {

// The datagrams in which a frame of this number travels.
inline std::vector<std::string> datagrams_of(const std::string& frame, unsigned fragments,
                                             std::uint16_t number = 0) {
  const std::string body = frame.substr(kBodyAt);
  const std::size_t each = bytes_of_fragment(static_cast<std::uint32_t>(body.size()), fragments);
  std::vector<std::string> datagrams;
  for (unsigned i = 0; i < fragments; ++i) {
    std::string datagram = frame.substr(kDatagramAt, kFragmentHeaderBytes);
    datagram[2] = static_cast<char>(number >> 8);
    datagram[3] = static_cast<char>(number);
    datagram[6] = static_cast<char>(i);
    datagram[7] = static_cast<char>(fragments);
    datagram += body.substr(std::min(i * each, body.size()), each);
    datagram.resize(kFragmentHeaderBytes + each, '\0');
    datagrams.push_back(datagram);
  }
  return datagrams;
}
inline std::string datagram_of(const std::string& frame, std::uint16_t number = 0) {
  return datagrams_of(frame, 1, number).front();
}

// A socket that may say anything.
class RawUdp {
 public:
  explicit RawUdp(const control::HostAddress& at)
      : is_v6_(at.is_v6),
        socket_(socket(at.is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress own = socket_address(at);
    const int yes = 1;
    setsockopt(socket_.get(), level(), is_v6_ ? IPV6_RECVTCLASS : IP_RECVTOS, &yes, sizeof yes);
    if (bind(socket_.get(), &own.any, bytes_of(own)) != 0) {
      throw std::runtime_error(std::string("a test cannot bind: ") + std::strerror(errno));
    }
  }

  void send(const control::HostAddress& to, const std::string& bytes, int marks = 2) const {
    setsockopt(socket_.get(), level(), is_v6_ ? IPV6_TCLASS : IP_TOS, &marks, sizeof marks);
    const SocketAddress there = socket_address(to);
    EXPECT_EQ(sendto(socket_.get(), bytes.data(), bytes.size(), 0, &there.any, bytes_of(there)),
              static_cast<ssize_t>(bytes.size()));
  }

  // From now on what the kernel has in one piece comes in one receive().
  void receive_trains() const {
    const int yes = 1;
    setsockopt(socket_.get(), SOL_UDP, UDP_GRO, &yes, sizeof yes);
  }

  struct Datagram {
    std::string bytes;
    int marks = -1;
    std::size_t each = 0;  // of a train
  };
  // The next one, or none if nothing comes in time.
  Datagram receive() const {
    pollfd readable{socket_.get(), POLLIN, 0};
    constexpr int kPatience = 20'000;
    if (poll(&readable, 1, kPatience) != 1) return {};
    std::string bytes(65536, '\0');
    alignas(cmsghdr) char control[64];
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(socket_.get(), &message, 0);
    if (size < 0) return {};
    bytes.resize(static_cast<std::size_t>(size));
    Datagram datagram{bytes};
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
      if (item->cmsg_level == level()) datagram.marks = *CMSG_DATA(item) & 3;
      if (item->cmsg_level != SOL_UDP) continue;
      int each = 0;
      std::memcpy(&each, CMSG_DATA(item), sizeof each);
      datagram.each = static_cast<std::size_t>(each);
    }
    return datagram;
  }

 private:
  int level() const { return is_v6_ ? IPPROTO_IPV6 : IPPROTO_IP; }

  bool is_v6_;
  control::Descriptor socket_;
};

class UdpPortTest : public PortFrames {
 protected:
  static constexpr unsigned kPlaces = 3;  // of ports; other places are strangers'

  void SetUp() override { macs_ = {mac(0), mac(1)}; }

  // Of a place of this process. The family is that of the whole test.
  control::HostAddress address(unsigned place) const {
    const auto process = static_cast<unsigned>(getpid());
    control::HostAddress address;
    address.is_v6 = is_v6_;
    if (is_v6_) {
      address.bytes[15] = 1;  // ::1
      // Below those that the kernel gives to sockets that want any.
      address.udp_port = static_cast<std::uint16_t>(20'000 + process % 1200 * 10 + place);
    } else {
      address.bytes = {127, static_cast<std::uint8_t>(1 + process % 250),
                       static_cast<std::uint8_t>(process / 250),
                       static_cast<std::uint8_t>(101 + place)};
      address.udp_port = 47329;  // no cluster's
    }
    return address;
  }
  bool has_v6() const {
    try {
      const RawUdp any(address(9));
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  static std::array<std::uint8_t, 6> mac(unsigned place) { return link(place).mac; }
  // The addresses that frame() writes.
  static bcube::LinkAddress link(unsigned place) {
    return {{0x02, 0x47, 0, 0, 0, static_cast<std::uint8_t>(place)}, 0x0a000001 + place};
  }

  std::unique_ptr<UdpPort> port(unsigned place, UdpPortOptions options = {}) {
    options.at = address(place);
    options.link = link(place);
    for (unsigned other = 0; other < kPlaces; ++other) {
      if (other != place) options.peers.push_back({link(other), address(other)});
    }
    options.mtu = kMtu;
    options.datagram_mtu = datagram_mtu_ != 0 ? datagram_mtu_ : whole_frames();
    if (options.pools.empty()) options.pools = {&buffers()};
    return std::make_unique<UdpPort>(options, clock_);
  }

  // So long that each frame is one.
  std::uint32_t whole_frames() const {
    return kMtu + kEthernetBytes - kBodyAt + datagram_headers(is_v6_);
  }

  bool is_v6_ = false;
  std::uint32_t datagram_mtu_ = 0;  // 0: whole_frames()
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_UDP_PORT_FIXTURE_H_
