// The daemon's listening Unix sockets: for its own user and root, and for those whom it serves
// beside them (allowed_users.h). Others can connect, if there are such, and are told so. Clients
// that wait are taken, some in each round of the control loop.
//
// Where the system gives no socket for one (no descriptors, no memory), they go on waiting: for
// a pause nobody is taken, so that the loop does not turn for nothing, and then it is tried again.
// The log says so once, until one can be taken.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LISTENER_H_
#define GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LISTENER_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <sys/types.h>

#include "control/base/descriptor.h"
#include "dataplane/sockets/allowed_users.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

// Who has connected, as the kernel knows the process. `socket` is non-blocking and belongs to whom
// it is told.
struct Accepted {
  int socket = -1;
  pid_t pid = 0;
  uid_t uid = 0;
  Standing standing = Standing::stranger;
};

class ClientListener {
 public:
  static constexpr auto kPause = std::chrono::milliseconds(100);
  static constexpr unsigned kMostAccepted = 16;  // in one round

  // Listens on a socket at `path`, in place of one that a dead daemon has left there. Its mode is
  // 0600, or with tenants 0666. Who finds it there can connect: until then it has another name,
  // with a tilde at the end. type: SOCK_STREAM or SOCK_SEQPACKET. on_client: also of strangers.
  // Throws control::SetupError.
  ClientListener(ControlLoop& loop, std::filesystem::path path, int type,
                 std::function<void(const Accepted& client)> on_client, AllowedUsers users = {},
                 ControlLoop::Clock::duration pause = kPause);
  // Removes the socket's file, unless another daemon has put its own in that place.
  ~ClientListener();
  ClientListener(const ClientListener&) = delete;
  ClientListener& operator=(const ClientListener&) = delete;

 private:
  void listen(int type);
  void take();
  std::optional<Accepted> accept();

  ControlLoop& loop_;
  std::filesystem::path path_;
  std::function<void(const Accepted& client)> on_client_;
  AllowedUsers users_;
  ControlLoop::Clock::duration pause_;
  control::Descriptor descriptor_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool told_ = false;  // that none can be taken
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_CLIENT_LISTENER_H_
