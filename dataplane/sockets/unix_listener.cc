#include "dataplane/sockets/unix_listener.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {
constexpr int kBacklog = 64;
}

UnixListener::UnixListener(std::filesystem::path path, int type, AllowedUsers users)
    : path_(std::move(path)), users_(std::move(users)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path_.string();
  const std::string unborn = name + "~";
  if (unborn.size() >= sizeof address.sun_path) {
    throw control::SetupError(
        fmt::format("the socket path {} is too long: choose a shorter GRADCUBE_RUN", name));
  }
  unborn.copy(address.sun_path, sizeof address.sun_path - 1);
  descriptor_ = control::Descriptor(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!descriptor_.valid()) {
    throw control::SetupError(fmt::format("cannot make a socket for {}: {}{}", name,
                                          std::strerror(errno),
                                          errno == EMFILE ? ": raise `ulimit -n`" : ""));
  }
  unlink(unborn.c_str());
  struct stat facts {};
  if (bind(descriptor_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(unborn.c_str(), users_.any_tenants() ? 0666 : 0600) != 0 ||
      lstat(unborn.c_str(), &facts) != 0 || listen(descriptor_.get(), kBacklog) != 0 ||
      rename(unborn.c_str(), name.c_str()) != 0) {
    const int error = errno;
    unlink(unborn.c_str());
    throw control::SetupError(fmt::format("cannot listen on {}: {}", name, std::strerror(error)));
  }
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
}

UnixListener::~UnixListener() {
  struct stat facts {};
  if (lstat(path_.c_str(), &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

std::optional<UnixListener::Accepted> UnixListener::accept() {
  Accepted accepted;
  do {  // one that has given up meanwhile is none
    accepted.socket = accept4(descriptor_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (accepted.socket < 0 && (errno == ECONNABORTED || errno == EINTR));
  if (accepted.socket < 0 && errno == EAGAIN) return std::nullopt;
  if (accepted.socket < 0) {
    const int error = errno;
    throw control::SetupError(fmt::format("clients have to wait at {}: {}{}", path_.string(),
                                          std::strerror(error),
                                          error == EMFILE   ? ": raise `ulimit -n`"
                                          : error == ENFILE ? ": raise fs.file-max"
                                                            : ""));
  }
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(accepted.socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
    accepted.peer = {credentials.pid, credentials.uid};
    accepted.standing = users_.standing(accepted.socket, credentials.uid);
  }
  return accepted;
}

}  // namespace gradcube::dataplane
