#include "dataplane/daemon/session_server.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "dataplane/daemon/unix_listener.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

constexpr std::size_t kMostConnections = 1024;
constexpr auto kHelloWithin = std::chrono::seconds(5);

shared::Notice make_notice(shared::MessageType type, std::int32_t code,
                           const std::string& message) {
  shared::Notice notice{};
  notice.type = type;
  notice.code = code;
  message.copy(notice.text, shared::kNoticeTextBytes - 1);
  return notice;
}

template <typename Message>
bool send_message(int socket, const Message& message) {
  return send(socket, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

bool send_with_descriptors(int socket, const shared::Welcome& welcome, int first, int second) {
  iovec part{const_cast<shared::Welcome*>(&welcome), sizeof welcome};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> descriptors{first, second};
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof welcome);
}

bool has_ended(int pidfd) {
  pollfd process{pidfd, POLLIN, 0};
  return poll(&process, 1, 0) == 1;
}

// The message as a T, if it is as long as one.
template <typename T>
bool read_as(std::string_view bytes, T& message) {
  if (bytes.size() != sizeof message) return false;
  std::memcpy(&message, bytes.data(), sizeof message);
  return true;
}

}  // namespace

SessionServer::SessionServer(ControlLoop& loop, Cluster& cluster,
                             std::vector<std::filesystem::path> sockets, std::uint32_t nonce_seed)
    : loop_(loop),
      cluster_(cluster),
      paths_(std::move(sockets)),
      jobs_(cluster, *this, nonce_seed) {
  for (std::size_t server = 0; server < paths_.size(); ++server) {
    listen_at(static_cast<bcube::ServerId>(server), paths_[server]);
  }
}

SessionServer::~SessionServer() {
  while (!connections_.empty()) {
    const int socket = connections_.begin()->first;
    send_message(socket, make_notice(shared::MessageType::closing, GRADCUBE_ENODAEMON,
                                     "the daemon is shutting down"));
    close_connection(socket);
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    loop_.remove(listeners_[i]);
    close(listeners_[i]);
    unlink(paths_[i].c_str());
  }
}

void SessionServer::listen_at(bcube::ServerId server, const std::filesystem::path& path) {
  const int listener = listen_on(path, SOCK_SEQPACKET);
  listeners_.push_back(listener);
  loop_.add(listener, [this, listener, server] { accept(listener, server); });
}

void SessionServer::accept(int listener, bcube::ServerId server) {
  for (;;) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) return;
    const std::optional<Peer> peer = peer_of(socket);
    if (!peer.has_value() || !peer_is_us(socket)) {
      send_message(socket, make_notice(shared::MessageType::refused, GRADCUBE_EJOB,
                                       "this daemon belongs to another user"));
      close(socket);
      continue;
    }
    if (connections_.size() >= kMostConnections) {
      send_message(socket, make_notice(shared::MessageType::refused, GRADCUBE_EJOB,
                                       "this daemon has as many trainers as it takes"));
      close(socket);
      continue;
    }
    connections_[socket] = {server,
                            0,
                            static_cast<std::uint32_t>(peer->pid),
                            static_cast<std::uint32_t>(peer->uid),
                            -1,
                            SteadyClock::now()};
    loop_.add(socket, [this, socket] { read(socket); });
    watch_process(socket);
  }
}

// A child that the trainer has forked keeps the socket open after the trainer's death, so the
// process itself is watched too. Without that (an old kernel, a foreign pid namespace) the socket's
// end has to do.
void SessionServer::watch_process(int socket) {
  Connection& connection = connections_.at(socket);
  if (connection.pid == 0) return;
  connection.process = static_cast<int>(syscall(SYS_pidfd_open, connection.pid, 0));
  if (connection.process < 0) return;
  const int process = connection.process;
  loop_.add(process, [this, socket, process] {
    if (!has_ended(process)) return;
    read(socket);  // a goodbye may have come first
    if (connections_.contains(socket)) end(socket, Departure::death, "died");
  });
}

void SessionServer::read(int socket) {
  for (;;) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    std::array<char, sizeof(shared::Notice)> buffer{};
    const ssize_t received = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (received <= 0) {
      end(socket, Departure::death, "died");
      return;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(received));
    shared::MessageType type{};
    if (bytes.size() >= sizeof type) std::memcpy(&type, bytes.data(), sizeof type);
    shared::Hello hello{};
    shared::Inquiry inquiry{};
    if (type == shared::MessageType::hello && connection.member == 0 && read_as(bytes, hello)) {
      welcome(socket, connection, hello);
    } else if (type == shared::MessageType::inquiry && connection.member != 0 &&
               read_as(bytes, inquiry)) {
      answer(socket, connection, inquiry);
    } else if (type == shared::MessageType::goodbye) {
      end(socket, Departure::orderly, "left the job");
      return;
    } else {
      send_message(socket,
                   make_notice(shared::MessageType::closing, GRADCUBE_EPROTOCOL,
                               "the daemon does not understand this trainer: is it of the same "
                               "version?"));
      end(socket, Departure::violation,
          "was evicted by its daemon: it sent a message that makes no sense");
      return;
    }
  }
}

void SessionServer::welcome(int socket, Connection& connection, const shared::Hello& hello) {
  const auto refuse = [&](std::int32_t code, const std::string& message) {
    send_message(socket, make_notice(shared::MessageType::refused, code, message));
    close_connection(socket);
  };
  if (hello.version != shared::kLayoutVersion) {
    refuse(GRADCUBE_EPROTOCOL,
           fmt::format("the trainer's library speaks version {}, this daemon version {}",
                       hello.version, shared::kLayoutVersion));
    return;
  }
  const std::size_t name_bytes = strnlen(hello.job, shared::kJobNameBytes);
  try {
    const JoinedSession joined = jobs_.join({std::string(hello.job, name_bytes), connection.server,
                                             connection.pid, connection.uid, hello.heap_bytes});
    connection.member = joined.member;
    sockets_[joined.member] = socket;
    shared::Welcome welcome{};
    welcome.type = shared::MessageType::welcome;
    welcome.version = shared::kLayoutVersion;
    welcome.rank = joined.rank;
    welcome.size = joined.size;
    welcome.region_bytes = joined.region_bytes;
    const std::string server = cluster_.plan().space().text(connection.server);
    server.copy(welcome.server, sizeof welcome.server - 1);
    const bool sent =
        send_with_descriptors(socket, welcome, joined.region_descriptor, joined.trainer_doorbell);
    close(joined.trainer_doorbell);
    if (!sent) {
      end(socket, Departure::death, "died while it joined");
      return;
    }
    jobs_.start_if_complete(joined.member);
  } catch (const JoinRefused& refused) {
    refuse(refused.code(), refused.what());
  } catch (const std::exception& error) {
    if (connection.member == 0) {
      refuse(GRADCUBE_ESYSTEM, error.what());
    } else {
      end(socket, Departure::violation, "was evicted by its daemon: its job could not start");
      throw;
    }
  }
}

void SessionServer::answer(int socket, const Connection& connection,
                           const shared::Inquiry& inquiry) {
  shared::Notice notice = make_notice(shared::MessageType::report, GRADCUBE_ETIMEDOUT,
                                      jobs_.explain(connection.member, inquiry.request));
  notice.first_request = notice.last_request = inquiry.request;
  send_message(socket, notice);
}

void SessionServer::end(int socket, Departure departure, const std::string& reason) {
  const MemberId member = connections_.at(socket).member;
  close_connection(socket);
  if (member != 0) jobs_.leave(member, departure, reason);
}

void SessionServer::close_connection(int socket) {
  const Connection& connection = connections_.at(socket);
  if (connection.process >= 0) {
    loop_.remove(connection.process);
    close(connection.process);
  }
  sockets_.erase(connection.member);
  connections_.erase(socket);
  loop_.remove(socket);
  close(socket);
}

void SessionServer::notify(MemberId member, const shared::Notice& notice) {
  const auto found = sockets_.find(member);
  if (found != sockets_.end()) send_message(found->second, notice);
}

void SessionServer::evict(MemberId member, std::int32_t code, const std::string& message) {
  const auto found = sockets_.find(member);
  if (found == sockets_.end()) return;
  const int socket = found->second;
  send_message(socket, make_notice(shared::MessageType::closing, code, message));
  close_connection(socket);
}

void SessionServer::expire_silent() {
  const auto now = SteadyClock::now();
  std::vector<int> silent;
  for (const auto& [socket, connection] : connections_) {
    if (connection.member == 0 && now - connection.since > kHelloWithin) silent.push_back(socket);
  }
  for (int socket : silent) close_connection(socket);
}

}  // namespace gradcube::dataplane
