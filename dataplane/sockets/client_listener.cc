#include "dataplane/sockets/client_listener.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <string>
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

ClientListener::ClientListener(ControlLoop& loop, std::filesystem::path path, int type,
                               std::function<void(const Accepted& client)> on_client,
                               AllowedUsers users, ControlLoop::Clock::duration pause)
    : loop_(loop),
      path_(std::move(path)),
      on_client_(std::move(on_client)),
      users_(std::move(users)),
      pause_(pause) {
  listen(type);
  try {
    loop_.add(descriptor_.get(), [this] { take(); });
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

void ClientListener::listen(int type) {
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
      lstat(unborn.c_str(), &facts) != 0 || ::listen(descriptor_.get(), kBacklog) != 0 ||
      rename(unborn.c_str(), name.c_str()) != 0) {
    const int error = errno;
    unlink(unborn.c_str());
    throw control::SetupError(fmt::format("cannot listen on {}: {}", name, std::strerror(error)));
  }
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
}

ClientListener::~ClientListener() {
  loop_.remove(descriptor_.get());
  struct stat facts {};
  if (lstat(path_.c_str(), &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

void ClientListener::take() {
  for (unsigned i = 0; i < kMostAccepted; ++i) {
    const std::optional<Accepted> client = accept();
    if (!client.has_value()) return;
    told_ = false;
    on_client_(*client);
  }
}

// The next client that waits; nothing when none does, or when the system gives no socket for it.
// Throws control::SetupError, which the loop logs, when it gives none for the first time.
std::optional<Accepted> ClientListener::accept() {
  Accepted client;
  do {  // one that has given up meanwhile is none
    client.socket = accept4(descriptor_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (client.socket < 0 && (errno == ECONNABORTED || errno == EINTR));
  if (client.socket < 0 && errno == EAGAIN) return std::nullopt;
  if (client.socket < 0) {
    const int error = errno;
    loop_.pause_for(descriptor_.get(), pause_);
    if (std::exchange(told_, true)) return std::nullopt;
    throw control::SetupError(fmt::format("clients have to wait at {}: {}{}", path_.string(),
                                          std::strerror(error),
                                          error == EMFILE   ? ": raise `ulimit -n`"
                                          : error == ENFILE ? ": raise fs.file-max"
                                                            : ""));
  }
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(client.socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
    client.pid = credentials.pid;
    client.uid = credentials.uid;
    client.standing = users_.standing(client.socket, credentials.uid);
  }
  return client;
}

}  // namespace gradcube::dataplane
