#include "trainer/src/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "trainer/src/deadline.h"
#include "trainer/src/failure.h"
#include "trainer/src/quoted.h"
#include "trainer/src/result_code.h"
#include "trainer/src/trust.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

constexpr int kHandshakeMilliseconds = 5000;

// Large enough for either answer to a hello, and for one byte too many, which tells a longer
// message from a fitting one.
using Packet = std::array<char, std::max(sizeof(shared::Welcome), sizeof(shared::Notice)) + 1>;

void check_job_name(const std::string& job) {
  if (!shared::is_job_name(job)) {
    throw Failure(GRADCUBE_EJOB, "invalid job name " + quoted(job) + ": " + shared::kJobNameRule);
  }
}

Failure no_daemon(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return Failure(GRADCUBE_ENODAEMON,
                   path +
                       " is not a socket: give the server-*.sock of a server, in the run "
                       "directory that `gradcube up` prints");
  }
  return Failure(GRADCUBE_ENODAEMON,
                 "no daemon answers at " + path + ": start a cluster with `gradcube up`");
}

Failure bad_answer(const std::string& path, const std::string& what) {
  return Failure(GRADCUBE_EPROTOCOL, "the daemon at " + path + " answered with " + what +
                                         ": use the library that came with the daemon");
}

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

// Descriptors that came with a message, each owned from here on.
std::vector<Descriptor> descriptors_of(msghdr& message) {
  std::vector<Descriptor> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

shared::MessageType type_of(const Packet& packet, std::size_t bytes) {
  shared::MessageType type{};
  if (bytes >= sizeof(type)) std::memcpy(&type, packet.data(), sizeof(type));
  return type;
}

bool well_formed(const shared::Notice& notice) {
  return is_result_code(notice.code) && notice.first_request <= notice.last_request &&
         std::memchr(notice.text, '\0', sizeof(notice.text)) != nullptr;
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

Admission Connection::join(const std::string& job, std::uint64_t heap_bytes) {
  check_job_name(job);
  const Deadline deadline = Deadline::in_milliseconds(kHandshakeMilliseconds);
  send_hello(job, heap_bytes);
  pollfd waiting{socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, deadline.poll_timeout());
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    throw Failure(GRADCUBE_ENODAEMON, "the daemon at " + path_ +
                                          " accepted the connection but did not answer within " +
                                          std::to_string(kHandshakeMilliseconds / 1000) +
                                          " seconds: look at it with `gradcube status`");
  }
  return receive_answer();
}

void Connection::send_hello(const std::string& job, std::uint64_t heap_bytes) {
  shared::Hello hello{};
  hello.type = shared::MessageType::hello;
  hello.version = shared::kLayoutVersion;
  hello.heap_bytes = heap_bytes;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  std::memcpy(hello.job, job.data(), job.size());
  if (::send(socket_.get(), &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello)) return;
  // A daemon that refuses at once has closed its end already; its answer can still be read.
  if (errno != EPIPE && errno != ECONNRESET) throw no_daemon(path_);
}

Admission Connection::receive_answer() {
  Packet packet{};
  constexpr std::size_t kDescriptors = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptors * sizeof(int))];
  iovec part{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  // A daemon that closed without reading the hello resets the connection. The reset is reported
  // once, before the answer.
  ssize_t received = -1;
  for (int attempts = 0; attempts < 2 && received < 0; ++attempts) {
    received = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received < 0 && errno != ECONNRESET) break;
  }
  if (received <= 0) throw no_daemon(path_);
  std::vector<Descriptor> descriptors = descriptors_of(message);
  const auto bytes = static_cast<std::size_t>(received);

  const shared::MessageType type = type_of(packet, bytes);
  if (type == shared::MessageType::refused && bytes == sizeof(shared::Notice)) {
    shared::Notice notice{};
    std::memcpy(&notice, packet.data(), sizeof(notice));
    if (!well_formed(notice) || notice.code == GRADCUBE_OK) {
      throw bad_answer(path_, "a malformed refusal");
    }
    throw Failure(notice.code, notice.text);
  }
  if (type != shared::MessageType::welcome || bytes < 2 * sizeof(std::uint32_t)) {
    throw bad_answer(path_, "neither a welcome nor a refusal");
  }
  Admission admission{};
  std::memcpy(&admission.welcome, packet.data(), std::min(bytes, sizeof(admission.welcome)));
  const shared::Welcome& welcome = admission.welcome;
  // The version comes first: another version's welcome may well have another length.
  if (welcome.version != shared::kLayoutVersion) {
    throw bad_answer(path_, "layout version " + std::to_string(welcome.version) +
                                ", and this library has " + std::to_string(shared::kLayoutVersion));
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    throw Failure(GRADCUBE_ESYSTEM,
                  "this process has no room for the descriptors that the daemon at " + path_ +
                      " gave it: raise its limit of open files (ulimit -n)");
  }
  if (bytes != sizeof(shared::Welcome) || descriptors.size() != kDescriptors ||
      welcome.rank >= welcome.size || welcome.size > INT32_MAX ||
      std::memchr(welcome.server, '\0', sizeof(welcome.server)) == nullptr) {
    throw bad_answer(path_, "a malformed welcome");
  }
  admission.region = std::move(descriptors[0]);
  admission.doorbell = std::move(descriptors[1]);
  return admission;
}

Connection::Received Connection::receive(shared::Notice& notice) {
  Packet packet;
  ssize_t received = 0;
  // A reset is reported once, before the daemon's last message.
  for (int resets = 0; resets < 2; ++resets) {
    do {
      received = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    if (received >= 0 || errno != ECONNRESET) break;
  }
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::nothing;
  if (received != sizeof(notice)) return Received::closed;
  std::memcpy(&notice, packet.data(), sizeof(notice));
  return well_formed(notice) ? Received::notice : Received::closed;
}

void Connection::send_inquiry(std::uint64_t request) {
  shared::Inquiry inquiry{};
  inquiry.type = shared::MessageType::inquiry;
  inquiry.request = request;
  ::send(socket_.get(), &inquiry, sizeof(inquiry), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Connection::close() {
  if (socket_.valid()) ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
}

void Connection::send_goodbye() {
  const shared::MessageType goodbye = shared::MessageType::goodbye;
  ::send(socket_.get(), &goodbye, sizeof(goodbye), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gradcube::trainer
