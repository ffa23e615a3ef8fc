#include "dataplane/fabric/kernel/interface_claim.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <net/if.h>
#include <optional>
#include <sstream>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

struct Name {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size = 0;

  explicit Name(const std::string& interface) {
    const std::string name = "gradcube-interface/" + interface;
    // Behind a zero: it is no path.
    const std::size_t length = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

control::Descriptor make_socket() {
  return control::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Whether a process of the user has a packet socket on the interface.
bool has_packet_socket(uid_t user, const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  std::ifstream sockets("/proc/net/packet");
  std::string line;
  std::getline(sockets, line);  // the names of the columns
  std::string address, references, type, protocol, running, memory;
  unsigned its_index = 0;
  uid_t its_user = 0;
  while (std::getline(sockets, line)) {
    std::istringstream fields(line);
    fields >> address >> references >> type >> protocol >> its_index >> running >> memory >>
        its_user;
    if (fields && its_index == index && its_user == user) return true;
  }
  return false;
}

// The process that has the name; none where it is no daemon that could open the port.
std::optional<pid_t> holder(const Name& name, const std::string& interface) {
  const control::Descriptor asking = make_socket();
  if (connect(asking.get(), name.get(), name.size) != 0) return std::nullopt;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(asking.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  const bool is_trusted = peer.uid == 0 || peer.uid == geteuid();
  if (!is_trusted && !has_packet_socket(peer.uid, interface)) return std::nullopt;
  return peer.pid;
}

}  // namespace

InterfaceClaim::InterfaceClaim(const std::string& interface) : socket_(make_socket()) {
  const Name name(interface);
  if (bind(socket_.get(), name.get(), name.size) == 0 && listen(socket_.get(), SOMAXCONN) == 0) {
    return;
  }
  const int error = errno;
  if (error != EADDRINUSE) {
    throw control::SetupError(fmt::format("cannot keep others from network interface {}: {}",
                                          interface, std::strerror(error)));
  }
  const std::optional<pid_t> other = holder(name, interface);
  if (!other) return;
  throw control::SetupError(fmt::format(
      "network interface {} is already a port of another daemon (pid {}): end that one, "
      "or name other interfaces",
      interface, *other));
}

void InterfaceClaim::hang_up() {
  while (control::Descriptor(accept(socket_.get(), nullptr, nullptr)).get() >= 0) {
  }
}

}  // namespace gradcube::dataplane
