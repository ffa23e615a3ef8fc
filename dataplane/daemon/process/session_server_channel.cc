// What nodes tell trainers, by the server of their sessions.

#include <deque>
#include <fcntl.h>
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
    sent = send_with(found->second, welcome, session.trainer_doorbell);
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
  if (found != sockets_.end()) answer(found->second, notice, descriptor);
}

// What the trainer waits for. memory: of a hub, if the notice has a code of 0.
void SessionServer::answer(int socket, const shared::Notice& notice, int memory) {
  std::deque<Answer>& untold = connections_.at(socket).untold;
  const bool is_hub = notice.type == shared::MessageType::hub_made && notice.code == GRADCUBE_OK;
  if (untold.empty() &&
      (is_hub ? send_with(socket, notice, memory) : send_notice(socket, notice))) {
    return;
  }
  if (untold.size() == kMostUntold) return;
  untold_.insert(socket);
  Answer& waits = untold.emplace_back(Answer{notice, control::Descriptor()});
  if (!is_hub) return;
  waits.memory = control::Descriptor(::fcntl(memory, F_DUPFD_CLOEXEC, 0));
  if (waits.memory.valid()) return;
  waits.notice = make_notice(shared::MessageType::hub_made, GRADCUBE_ESYSTEM,
                             "the daemon has no descriptor left for the hub's memory");
  waits.notice.number = notice.number;
}

void SessionServer::tell_untold() {
  std::erase_if(untold_, [this](int socket) {
    std::deque<Answer>& untold = connections_.at(socket).untold;
    while (!untold.empty()) {
      const auto& [notice, memory] = untold.front();
      if (!(memory.valid() ? send_with(socket, notice, memory.get())
                           : send_notice(socket, notice))) {
        break;
      }
      untold.pop_front();
    }
    return untold.empty();
  });
}

void SessionServer::evict(TrainerId trainer, std::int32_t code, const std::string& message) {
  const auto found = sockets_.find(trainer);
  if (found == sockets_.end()) return;
  const int socket = found->second;
  send_notice(socket, make_notice(shared::MessageType::closing, code, message));
  end_evicted(socket);
}

}  // namespace gradcube::dataplane
