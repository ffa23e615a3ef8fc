#include "trainer/src/connection/connection.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <utility>

#include "trainer/src/base/failure.h"
#include "trainer/src/connection/trust.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    throw Failure(GRADCUBE_EINVAL, "the socket path " + path + " is too long: at most " +
                                       std::to_string(sizeof(address.sun_path) - 1) +
                                       " bytes are accepted");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Connection::Connection(std::string path) : path_(std::move(path)) {
  const sockaddr_un address = address_of(path_);
  socket_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) {
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot make a socket", errno));
  }
  // A daemon that hangs with a full backlog would block connect() for ever.
  const timeval limit{kHandshakeMilliseconds / 1000, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  int result = 0;
  do {
    result = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    if (errno != EACCES && errno != EPERM) throw no_daemon(path_);
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot connect to " + path_, errno) +
                                        ": run as the user who started the cluster");
  }
  check_daemon(socket_.get(), path_);
}

bool Connection::send(const void* message, std::size_t bytes, int patience) {
  pollfd room{socket_.get(), POLLOUT, 0};
  while (::send(socket_.get(), message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN && ::poll(&room, 1, patience) == 1) continue;
    if (errno != EINTR) return false;
  }
  return true;
}

void Connection::shut_down() { ::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace gradcube::trainer
