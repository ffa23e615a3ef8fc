// The daemon's listening Unix sockets: for its own user and root, and for those whom it serves
// beside them (allowed_users.h). Others can connect, if there are such, and are told so.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_UNIX_LISTENER_H_
#define GRADCUBE_DATAPLANE_SOCKETS_UNIX_LISTENER_H_

#include <filesystem>
#include <optional>
#include <sys/types.h>

#include "control/base/descriptor.h"
#include "dataplane/sockets/allowed_users.h"

namespace gradcube::dataplane {

// The process at the other end of a connection, as the kernel knows it.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};

class UnixListener {
 public:
  // A client that has connected. `socket` is non-blocking and belongs to the caller.
  struct Accepted {
    int socket = -1;
    Peer peer;
    Standing standing = Standing::stranger;
  };

  // Listens without blocking on a socket at `path`, in place of one that a dead daemon has left
  // there. Its mode is 0600, or with tenants 0666. Who finds it there can connect: until then it
  // has another name, with a tilde at the end. type: SOCK_STREAM or SOCK_SEQPACKET. Throws
  // control::SetupError.
  UnixListener(std::filesystem::path path, int type, AllowedUsers users = {});
  // Removes the socket's file, unless another daemon has put its own in that place.
  ~UnixListener();

  int descriptor() const { return descriptor_.get(); }

  // The next client that waits; nothing when none does. Throws control::SetupError where the system
  // gives no socket for it: it goes on waiting.
  std::optional<Accepted> accept();

 private:
  std::filesystem::path path_;
  AllowedUsers users_;
  control::Descriptor descriptor_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_UNIX_LISTENER_H_
