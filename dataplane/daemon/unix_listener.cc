#include "dataplane/daemon/unix_listener.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

int listen_on(const std::filesystem::path& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  if (name.size() >= sizeof address.sun_path) {
    throw control::SetupError(
        fmt::format("the socket path {} is too long: choose a shorter GRADCUBE_RUN", name));
  }
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  const int listener = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  unlink(name.c_str());
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(name.c_str(), 0600) != 0 || listen(listener, 64) != 0) {
    const int error = errno;
    if (listener >= 0) close(listener);
    throw control::SetupError(fmt::format("cannot listen on {}: {}", name, std::strerror(error)));
  }
  return listener;
}

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return std::nullopt;
  return Peer{credentials.pid, credentials.uid};
}

bool peer_is_us(int socket) {
  const std::optional<Peer> peer = peer_of(socket);
  return peer.has_value() && (peer->uid == geteuid() || peer->uid == 0);
}

}  // namespace gradcube::dataplane
