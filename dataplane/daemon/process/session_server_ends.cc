// How trainers go: by themselves, by their death, evicted, or with their daemon.

#include <cerrno>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "dataplane/daemon/process/session_server.h"
#include "dataplane/daemon/trainers/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// More messages than a socket's queue holds. Only an ended process's remaining children can have
// sent more.
constexpr unsigned kMostLastMessages = 1024;

bool has_ended(int pidfd) {
  pollfd process{pidfd, POLLIN, 0};
  return poll(&process, 1, 0) == 1;
}

}  // namespace

void SessionServer::close() {
  listeners_.clear();
  while (!connections_.empty()) {
    const int socket = connections_.begin()->first;
    tell_closing(socket);
    end(socket, Departure::shutdown, "lost its daemon, which was shut down");
  }
}

void SessionServer::tell_closing(int socket) {
  if (const auto& reads = connections_.at(socket).reads; reads != nullptr) {
    return reads->outlive_daemon();  // it has been told why
  }
  send_notice(socket,
              make_notice(shared::MessageType::closing, GRADCUBE_ENODAEMON, closing_reason_));
}

// A child of the trainer that ran no fork handlers keeps the socket open after the trainer's death,
// so the process itself is watched too. Without that (an old kernel, a foreign pid namespace) the
// socket's end has to do.
void SessionServer::watch_process(int socket) {
  Connection& connection = connections_.at(socket);
  if (connection.pid == 0) return;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, connection.pid, 0));
  if (process < 0 && errno == ESRCH) {  // it ended before it was accepted
    close_connection(socket);
    return;
  }
  if (process < 0) return;
  connection.process = process;
  loop_.add(process, [this, socket, process] {
    if (has_ended(process)) process_has_ended(socket);
  });
}

void SessionServer::process_has_ended(int socket) {
  // A goodbye may have come first.
  for (unsigned i = 0; i < kMostLastMessages && read_message(socket); ++i) {
  }
  if (connections_.contains(socket)) end(socket, Departure::death, "died");
}

// From where the connection is closed, nothing but the node needs memory, which knows what to do
// without.
void SessionServer::end(int socket, Departure departure, std::string reason) {
  const std::optional<TrainerId> trainer = connections_.at(socket).trainer;
  close_connection(socket);
  if (!trainer.has_value()) return;
  nodes_.at(trainer->server).leave(*trainer, departure, std::move(reason), clock_.now());
}

// Of a client whose message was taken, and is lost: it would wait for the answer for ever.
void SessionServer::give_up_without_memory(int socket) {
  if (!connections_.contains(socket)) return;
  send_notice(socket,
              make_notice(shared::MessageType::closing, GRADCUBE_ENOMEM, no_memory_reason_));
  const std::optional<TrainerId> trainer = connections_.at(socket).trainer;
  end_evicted(socket);
  if (!trainer.has_value()) return;
  // So short a reason needs no memory.
  nodes_.at(trainer->server).leave(*trainer, Departure::violation, "found no memory", clock_.now());
}

// Of a client that was told so. Its node knows the trainer until the caller says that it left.
void SessionServer::end_evicted(int socket) {
  Connection& connection = connections_.at(socket);
  if (connection.trainer.has_value()) {
    connection.reads = nodes_.at(connection.server).hub_read_by(*connection.trainer);
  }
  if (connection.reads == nullptr) return close_connection(socket);
  growth_.forget(socket);
  put_off_.erase(socket);
  untold_.erase(socket);
  connection.untold.clear();
  sockets_.erase(*connection.trainer);
  connection.trainer.reset();
  connection.inquiry.reset();
  connection.region.reset();
  ::shutdown(socket, SHUT_WR);
}

void SessionServer::close_connection(int socket) {
  growth_.forget(socket);
  const Connection& connection = connections_.at(socket);
  if (connection.process >= 0) {
    loop_.remove(connection.process);
    ::close(connection.process);
  }
  if (connection.trainer.has_value()) sockets_.erase(*connection.trainer);
  if (--connected_.at(connection.uid) == 0) connected_.erase(connection.uid);
  to_join_.remove(connection.uid, socket);
  connections_.erase(socket);
  put_off_.erase(socket);
  untold_.erase(socket);
  have_no_job_.erase(socket);
  loop_.remove(socket);
  ::close(socket);
}

}  // namespace gradcube::dataplane
