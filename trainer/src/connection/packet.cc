#include "trainer/src/connection/packet.h"

#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>

namespace gradcube::trainer {
namespace {

void take_descriptors(msghdr& message, Packet& packet) {
  std::size_t taken = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i, ++taken) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      packet.descriptor = Descriptor(fd);  // closes the one before
    }
  }
  if (taken > 1) packet.descriptor.reset();
}

}  // namespace

Received receive_packet(int socket, Packet& packet) {
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t received = -1;
  for (int resets = 0; received < 0 && resets < 2;) {
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received >= 0 || errno == EINTR) continue;
    if (errno != ECONNRESET) break;
    ++resets;
  }
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::nothing;
  if (received <= 0) return Received::closed;
  packet.size = static_cast<std::size_t>(received);
  packet.is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
  take_descriptors(message, packet);
  return Received::packet;
}

}  // namespace gradcube::trainer
