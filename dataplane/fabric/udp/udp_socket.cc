#include "dataplane/fabric/udp/udp_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <iterator>
#include <limits>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/fabric/udp/datagram.h"
#include "dataplane/fabric/udp/socket_address.h"

namespace gradcube::dataplane {

namespace {

using control::HostAddress;
using control::SetupError;

// More than the kernel allows an ordinary user (net.core.rmem_max, wmem_max): it gives what it
// allows. Nothing of it is taken before datagrams wait.
constexpr int kBufferBytes = 8 << 20;

[[noreturn]] void fail(const std::string& purpose, const HostAddress& own) {
  throw SetupError(
      fmt::format("cannot {} at {}: {}", purpose, control::host_text(own), std::strerror(errno)));
}

template <typename Value>
void set(int socket, int level, int option, const Value& value, const HostAddress& own) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) fail("set up a socket", own);
}

void forbid_to_cut(int socket, const HostAddress& own) {
  if (own.is_v6) {
    set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, int{IPV6_PMTUDISC_DO}, own);
  } else {
    set(socket, IPPROTO_IP, IP_MTU_DISCOVER, int{IP_PMTUDISC_DO}, own);
  }
}

void carry_marks(int socket, const HostAddress& own) {
  const int level = own.is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  set(socket, level, own.is_v6 ? IPV6_TCLASS : IP_TOS, int{kUnderstandsMarks}, own);
  set(socket, level, own.is_v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1, own);
}

std::vector<std::string> addresses_here(bool is_v6) {
  std::vector<std::string> texts;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return texts;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != (is_v6 ? AF_INET6 : AF_INET)) {
      continue;
    }
    SocketAddress address;
    std::memcpy(&address, one->ifa_addr, is_v6 ? sizeof address.v6 : sizeof address.v4);
    texts.push_back(control::ip_text(host_address(address, sizeof address)));
  }
  freeifaddrs(first);
  return texts;
}

[[noreturn]] void refuse_place(const HostAddress& own) {
  if (errno == EADDRNOTAVAIL) {
    throw SetupError(fmt::format(
        "this host does not have the address {}: it has {}; compare --server and `hosts`",
        control::ip_text(own), fmt::join(addresses_here(own.is_v6), ", ")));
  }
  if (errno == EADDRINUSE) {
    throw SetupError(fmt::format(
        "another process of this host has {}, UDP port {}: end it, or name another UDP port in "
        "`hosts` (10.0.0.1:5000)",
        control::ip_text(own), own.udp_port));
  }
  fail("receive", own);
}

control::Descriptor open_socket(const HostAddress& own) {
  control::Descriptor opened(
      socket(own.is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (opened.get() < 0) fail("open a UDP socket", own);
  if (own.is_v6) set(opened.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1, own);
  forbid_to_cut(opened.get(), own);
  return opened;
}

bool is_bound(int socket, const HostAddress& own) {
  const SocketAddress address = socket_address(own);
  return bind(socket, &address.any, bytes_of(address)) == 0;
}

}  // namespace

UdpSocket::UdpSocket(const HostAddress& own, Address address, std::uint64_t bits_per_second)
    : descriptor_(open_socket(own)) {
  const int socket = descriptor_.get();
  carry_marks(socket, own);
  set(socket, SOL_SOCKET, SO_RCVBUF, kBufferBytes, own);
  set(socket, SOL_SOCKET, SO_SNDBUF, kBufferBytes, own);
  if (bits_per_second != 0) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const auto bytes = static_cast<std::uint32_t>(std::min(bits_per_second / 8, kMost));
    set(socket, SOL_SOCKET, SO_MAX_PACING_RATE, bytes, own);
  }
  if (address == Address::shared) {
    set(socket, SOL_SOCKET, SO_REUSEPORT, 1, own);
  } else {
    // A kernel that cannot gives each datagram alone, as to others.
    const int yes = 1;
    setsockopt(socket, SOL_UDP, UDP_GRO, &yes, sizeof yes);
  }
  if (!is_bound(socket, own)) refuse_place(own);
}

void UdpSocket::spread_over(std::uint16_t queues) {
  // Of the datagram: the source port less the first, modulo the queues. One that is shorter goes to
  // the first.
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
                           BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, protocol::kFirstSourcePort),
                           BPF_STMT(BPF_ALU | BPF_AND | BPF_K, UINT16_MAX),
                           BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, queues),
                           BPF_STMT(BPF_RET | BPF_A, 0)};
  const sock_fprog given{static_cast<unsigned short>(std::size(program)), program};
  if (setsockopt(descriptor(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &given, sizeof given) != 0) {
    throw SetupError(fmt::format("the kernel does not spread datagrams over {} sockets: {}", queues,
                                 std::strerror(errno)));
  }
}

std::uint32_t UdpSocket::take_drops() {
  std::uint32_t numbers[SK_MEMINFO_VARS] = {};
  socklen_t bytes = sizeof numbers;
  if (getsockopt(descriptor(), SOL_SOCKET, SO_MEMINFO, numbers, &bytes) != 0) return 0;
  const std::uint32_t now = numbers[SK_MEMINFO_DROPS];  // it may wrap
  return now - std::exchange(drops_, now);
}

std::uint32_t path_mtu(const HostAddress& from, const HostAddress& to) {
  HostAddress any_port = from;
  any_port.udp_port = 0;
  const control::Descriptor asking = open_socket(from);
  if (!is_bound(asking.get(), any_port)) refuse_place(from);
  const SocketAddress there = socket_address(to);
  int mtu = 0;
  socklen_t bytes = sizeof mtu;
  if (connect(asking.get(), &there.any, bytes_of(there)) != 0 ||
      getsockopt(asking.get(), from.is_v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                 from.is_v6 ? IPV6_MTU : IP_MTU, &mtu, &bytes) != 0) {
    throw SetupError(fmt::format("no way leads from {} to {}: {}", control::host_text(from),
                                 control::host_text(to), std::strerror(errno)));
  }
  return static_cast<std::uint32_t>(mtu);
}

}  // namespace gradcube::dataplane
