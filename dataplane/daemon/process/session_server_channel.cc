// What nodes tell trainers, by the server of their sessions.

#include <cstring>
#include <unistd.h>

#include "dataplane/daemon/process/session_server.h"
#include "dataplane/daemon/trainers/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

void SessionServer::admit(TrainerId trainer, const JoinedSession& session) {
  const auto found = sockets_.find(trainer);
  bool sent = false;
  if (found != sockets_.end()) {
    shared::Welcome welcome{};
    welcome.type = shared::MessageType::welcome;
    welcome.rank = session.rank;
    welcome.size = session.size;
    welcome.server_number = trainer.server;
    space_.text(trainer.server).copy(welcome.server, sizeof welcome.server - 1);
    sent = send_welcome(found->second, welcome, session.trainer_doorbell);
    connections_.at(found->second).welcomed = true;
  }
  ::close(session.trainer_doorbell);
  if (!sent && found != sockets_.end()) end(found->second, Departure::death, "died");
}

void SessionServer::refuse(TrainerId trainer, std::int32_t code, const std::string& message) {
  if (const auto found = sockets_.find(trainer); found != sockets_.end()) {
    turn_away(found->second, code, message);
  }
}

void SessionServer::notify(TrainerId trainer, const shared::Notice& notice) {
  const auto found = sockets_.find(trainer);
  if (found == sockets_.end()) return;
  if (notice.type == shared::MessageType::report) {
    connections_.at(found->second).report = notice;
  }
  send_notice(found->second, notice);
}

void SessionServer::give_hub(TrainerId trainer, const shared::Notice& notice, int descriptor) {
  const auto found = sockets_.find(trainer);
  if (found == sockets_.end()) return;
  if (notice.code == GRADCUBE_OK) {
    send_hub(found->second, notice, descriptor);
  } else {
    send_notice(found->second, notice);
  }
}

void SessionServer::evict(TrainerId trainer, std::int32_t code, const std::string& message) {
  const auto found = sockets_.find(trainer);
  if (found == sockets_.end()) return;
  const int socket = found->second;
  send_notice(socket, make_notice(shared::MessageType::closing, code, message));
  end_evicted(socket);
}

}  // namespace gradcube::dataplane
