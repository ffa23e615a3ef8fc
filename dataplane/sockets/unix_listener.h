// The daemon's listening Unix sockets: for its own user and root alone.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_UNIX_LISTENER_H_
#define GRADCUBE_DATAPLANE_SOCKETS_UNIX_LISTENER_H_

#include <filesystem>
#include <optional>
#include <sys/types.h>

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
    bool welcome = false;  // a process of this user or of root
  };

  // Listens without blocking on a socket of mode 0600 at `path`, in place of one that a dead daemon
  // has left there. Who finds it there can connect: until then it has another name, with a tilde at
  // the end. type: SOCK_STREAM or SOCK_SEQPACKET. Throws control::SetupError.
  UnixListener(std::filesystem::path path, int type);
  // Removes the socket's file, unless another daemon has put its own in that place.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  int descriptor() const { return descriptor_; }

  // The next client that waits; nothing when none does. Throws control::SetupError where the system
  // gives no socket for it: it goes on waiting.
  std::optional<Accepted> accept();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_UNIX_LISTENER_H_
