#include "dataplane/fabric/kernel/network_interface.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "control/base/descriptor.h"
#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

// A socket of any family serves for questions about interfaces; this one needs no permission.
class Inquiry {
 public:
  explicit Inquiry(const std::string& name)
      : name_(name), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (!socket_.valid()) fail();
  }

  const ifreq& ask(unsigned long what) {
    request_ = {};
    name_.copy(request_.ifr_name, sizeof request_.ifr_name - 1);
    if (ioctl(socket_.get(), what, &request_) != 0) fail();
    return request_;
  }

 private:
  [[noreturn]] void fail() const {
    throw control::SetupError(fmt::format("cannot ask the kernel about network interface {}: {}",
                                          name_, std::strerror(errno)));
  }

  const std::string& name_;
  control::Descriptor socket_;
  ifreq request_{};
};

}  // namespace

NetworkInterface find_network_interface(const std::string& name) {
  if (if_nametoindex(name.c_str()) == 0) {
    throw control::SetupError(fmt::format(
        "there is no network interface '{}' here: `ip link` lists those that there are", name));
  }
  Inquiry inquiry(name);
  NetworkInterface found{.name = name};
  found.index = inquiry.ask(SIOCGIFINDEX).ifr_ifindex;
  found.mtu = static_cast<std::uint32_t>(inquiry.ask(SIOCGIFMTU).ifr_mtu);
  const sockaddr& address = inquiry.ask(SIOCGIFHWADDR).ifr_hwaddr;
  if (address.sa_family != ARPHRD_ETHER) {
    throw control::SetupError(
        fmt::format("network interface {} is no Ethernet interface: choose another", name));
  }
  std::copy_n(address.sa_data, found.mac.size(), found.mac.begin());
  if ((inquiry.ask(SIOCGIFFLAGS).ifr_flags & IFF_UP) == 0) {
    throw control::SetupError(
        fmt::format("network interface {} is down: `ip link set dev {} up`", name, name));
  }
  return found;
}

}  // namespace gradcube::dataplane
