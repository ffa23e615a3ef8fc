// Unix sockets as the daemon offers them: for its own user alone.
#ifndef GRADCUBE_DATAPLANE_DAEMON_UNIX_LISTENER_H_
#define GRADCUBE_DATAPLANE_DAEMON_UNIX_LISTENER_H_

#include <filesystem>
#include <optional>
#include <sys/types.h>

namespace gradcube::dataplane {

// A listening, non-blocking socket of mode 0600 at `path`; one left there by a daemon that died is
// replaced. type: SOCK_STREAM or SOCK_SEQPACKET. Throws control::SetupError.
int listen_on(const std::filesystem::path& path, int type);

struct Peer {
  pid_t pid;
  uid_t uid;
};
// Who is at the other end, as the kernel knows it.
std::optional<Peer> peer_of(int socket);

// Whether it is this user, or root.
bool peer_is_us(int socket);

}  // namespace gradcube::dataplane

#endif
