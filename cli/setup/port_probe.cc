#include "cli/setup/port_probe.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <map>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <utility>

#include "cli/cluster/daemon_process.h"
#include "control/base/errors.h"
#include "control/base/system_error.h"
#include "protocol/bytes.h"

namespace gradcube::cli {
namespace {

using control::SetupError;
using protocol::load_network;
using protocol::store_network;

constexpr std::uint16_t kGreetingType = ETH_P_802_EX1;
constexpr std::string_view kGreetingMark = "gradcube";
constexpr std::size_t kSetupAt = 8;
constexpr std::size_t kHostAt = 16;
constexpr std::size_t kPortAt = 18;
constexpr std::size_t kGreetingBytes = 20;
constexpr std::size_t kShortestPayload = 46;  // of Ethernet
// At one call, and of one port: anybody can send greetings.
constexpr unsigned kMostFrames = 4096;

using Greeting = std::array<std::uint8_t, kShortestPayload>;

struct Interface {
  unsigned flags = 0;
  bool is_ethernet = false;
  bool has_address = false;
};

bool is_of_link(const sockaddr* address) {
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::map<std::string, Interface> interfaces_of_host() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) throw control::system_error("cannot ask for the interfaces");
  std::map<std::string, Interface> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    Interface& interface = found[one->ifa_name];
    interface.flags = one->ifa_flags;
    if (one->ifa_addr == nullptr) continue;
    const auto family = one->ifa_addr->sa_family;
    if (family == AF_PACKET) {
      interface.is_ethernet =
          reinterpret_cast<const sockaddr_ll*>(one->ifa_addr)->sll_hatype == ARPHRD_ETHER;
    }
    interface.has_address = interface.has_address || family == AF_INET ||
                            (family == AF_INET6 && !is_of_link(one->ifa_addr));
  }
  freeifaddrs(all);
  return found;
}

bool is_free(const Interface& interface) {
  return interface.is_ethernet && !interface.has_address &&
         (interface.flags & (IFF_LOOPBACK | IFF_SLAVE)) == 0;
}

unsigned mtu_of(const std::string& name) {
  const control::Descriptor any(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ioctl(any.get(), SIOCGIFMTU, &request) == 0 ? static_cast<unsigned>(request.ifr_mtu) : 0;
}

sockaddr_ll at_interface(int index) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(kGreetingType);
  address.sll_ifindex = index;
  return address;
}

}  // namespace

PortProbe::PortProbe(const std::vector<std::string>& names) {
  const auto interfaces = interfaces_of_host();
  const auto add = [this](const std::string& name) {
    ports_.push_back({.name = name, .mtu = mtu_of(name)});
  };
  for (const std::string& name : names) {
    const auto found = interfaces.find(name);
    if (found == interfaces.end() || !found->second.is_ethernet) {
      throw SetupError(fmt::format(
          "there is no Ethernet interface '{}' here: `ip link` lists what there is", name));
    }
    add(name);
  }
  for (const auto& [name, interface] : interfaces) {
    if (names.empty() && is_free(interface)) add(name);
  }
  look();
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    if (ports_[port].is_up) listen(port);
  }
}

const std::vector<PortFacts>& PortProbe::look() {
  auto interfaces = interfaces_of_host();
  for (PortFacts& port : ports_) {
    port.is_up = (interfaces[port.name].flags & IFF_UP) != 0;
    port.has_carrier = (interfaces[port.name].flags & IFF_RUNNING) != 0;
  }
  return ports_;
}

void PortProbe::listen(std::size_t port) {
  const std::string& name = ports_[port].name;
  // Of this type alone, so that it does not see what it sends itself.
  control::Descriptor descriptor(
      socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(kGreetingType)));
  if (descriptor.get() < 0 && errno == EPERM) {
    throw SetupError(
        fmt::format("this user may not open network interfaces: it needs CAP_NET_RAW there. Set up "
                    "as root, or let root type there `{}`",
                    setcap_command()));
  }
  const auto index = static_cast<int>(if_nametoindex(name.c_str()));
  const sockaddr_ll address = at_interface(index);
  if (descriptor.get() < 0 ||
      bind(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw control::system_error("cannot open network interface {}", name);
  }
  sockets_.push_back({port, index, std::move(descriptor)});
}

void PortProbe::greet(std::uint64_t setup, std::size_t host) {
  for (const Socket& socket : sockets_) {
    Greeting frame{};
    kGreetingMark.copy(reinterpret_cast<char*>(frame.data()), kGreetingMark.size());
    store_network<std::uint64_t>(frame.data() + kSetupAt, setup);
    store_network(frame.data() + kHostAt, static_cast<std::uint16_t>(host));
    store_network(frame.data() + kPortAt, static_cast<std::uint16_t>(socket.port));
    sockaddr_ll to = at_interface(socket.interface);
    to.sll_halen = ETH_ALEN;
    std::fill_n(to.sll_addr, ETH_ALEN, std::uint8_t{0xff});
    // One that is lost, because the interface has gone down, say, is as one that nobody hears.
    (void)!sendto(socket.descriptor.get(), frame.data(), frame.size(), 0,
                  reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
}

std::vector<PortProbe::Heard> PortProbe::take_heard(std::uint64_t setup) {
  std::vector<Heard> heard;
  for (const Socket& socket : sockets_) {
    for (unsigned i = 0; i < kMostFrames; ++i) {
      Greeting frame{};
      const ssize_t bytes =
          recv(socket.descriptor.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_TRUNC);
      if (bytes < 0 && errno != ENETDOWN) break;
      if (bytes < static_cast<ssize_t>(kGreetingBytes) ||
          std::memcmp(frame.data(), kGreetingMark.data(), kGreetingMark.size()) != 0 ||
          load_network<std::uint64_t>(frame.data() + kSetupAt) != setup) {
        continue;
      }
      heard.push_back({socket.port,
                       {load_network<std::uint16_t>(frame.data() + kHostAt),
                        load_network<std::uint16_t>(frame.data() + kPortAt)}});
    }
  }
  return heard;
}

}  // namespace gradcube::cli
