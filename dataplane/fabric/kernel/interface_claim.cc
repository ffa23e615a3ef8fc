#include "dataplane/fabric/kernel/interface_claim.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <optional>
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

// The process that has the name; none where it is no daemon that could open the port: it does not
// listen, or is of a user other than root and this process's own.
std::optional<pid_t> holder(const Name& name) {
  const control::Descriptor asking = make_socket();
  if (connect(asking.get(), name.get(), name.size) != 0) return std::nullopt;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(asking.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  if (peer.uid != 0 && peer.uid != geteuid()) return std::nullopt;
  return peer.pid;
}

}  // namespace

InterfaceClaim::InterfaceClaim(const std::string& interface) : socket_(make_socket()) {
  const Name name(interface);
  // Who asks for the holder is never answered, and so stays in the queue.
  if (bind(socket_.get(), name.get(), name.size) == 0 && listen(socket_.get(), SOMAXCONN) == 0) {
    return;
  }
  const int error = errno;
  if (error != EADDRINUSE) {
    throw control::SetupError(fmt::format("cannot keep others from network interface {}: {}",
                                          interface, std::strerror(error)));
  }
  const std::optional<pid_t> other = holder(name);
  if (!other) return;
  throw control::SetupError(fmt::format(
      "network interface {} is already a port of another daemon (pid {}): end that one, "
      "or name other interfaces",
      interface, *other));
}

}  // namespace gradcube::dataplane
