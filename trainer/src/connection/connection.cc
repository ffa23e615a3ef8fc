#include "trainer/src/connection/connection.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <utility>

#include "trainer/src/base/failure.h"
#include "trainer/src/connection/handshake.h"
#include "trainer/src/connection/message.h"
#include "trainer/src/connection/packet_with_descriptor.h"
#include "trainer/src/connection/trust.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

constexpr int kPatience = 1000;  // milliseconds

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

Connection::Received Connection::receive(shared::Notice& notice, Descriptor& descriptor) {
  Packet packet;
  PacketWithDescriptor message(packet);
  ssize_t received = 0;
  // A reset is reported once, before the daemon's last message.
  for (int resets = 0; resets < 2; ++resets) {
    do {
      received = ::recvmsg(socket_.get(), &message.header(), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    if (received >= 0 || errno != ECONNRESET) break;
  }
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::nothing;
  if (received <= 0) return Received::closed;
  descriptor = message.take_descriptor();
  return read_notice(packet, static_cast<std::size_t>(received), notice) ? Received::notice
                                                                         : Received::closed;
}

void Connection::send_inquiry(std::uint64_t request, std::uint32_t lane, std::uint64_t number) {
  shared::Inquiry inquiry{};
  inquiry.type = shared::MessageType::inquiry;
  inquiry.request = request;
  inquiry.lane = lane;
  inquiry.number = number;
  ::send(socket_.get(), &inquiry, sizeof(inquiry), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Connection::send_grow(std::uint64_t end, std::uint64_t wanted) {
  shared::Grow grow{};
  grow.type = shared::MessageType::grow;
  grow.end = end;
  grow.wanted = wanted;
  return say(&grow, sizeof grow);
}

void Connection::send_make_hub(std::uint32_t number, std::uint32_t lane, std::uint64_t offset,
                               std::uint64_t bytes) {
  shared::MakeHub wish{};
  wish.type = shared::MessageType::make_hub;
  wish.number = number;
  wish.lane = lane;
  wish.offset = offset;
  wish.bytes = bytes;
  say(&wish, sizeof wish);
}

// What the daemon must hear, if it reads what came before within kPatience.
bool Connection::say(const void* message, std::size_t bytes) {
  pollfd room{socket_.get(), POLLOUT, 0};
  while (::send(socket_.get(), message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN && ::poll(&room, 1, kPatience) == 1) continue;
    if (errno != EINTR) return false;
  }
  return true;
}

void Connection::send_end_hub(std::uint32_t number) {
  const shared::EndHub end = {shared::MessageType::end_hub, number};
  say(&end, sizeof end);
}

void Connection::send_goodbye() {
  const shared::MessageType goodbye = shared::MessageType::goodbye;
  say(&goodbye, sizeof goodbye);
}

void Connection::send_abort() {
  const shared::MessageType abort = shared::MessageType::abort;
  ::send(socket_.get(), &abort, sizeof(abort), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Connection::shut_down() { ::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace gradcube::trainer
