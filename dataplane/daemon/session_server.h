// The sockets on which trainers open their sessions: one per server, server-<digits>.sock in the
// run directory.
//
// Speaks trainer/shared_layout.h's messages. Trainers of another user are turned away (SO_PEERCRED;
// root is let in). The end of a socket without a goodbye is the notice of a trainer's death.
// Nothing here blocks: a trainer that does not read its notices misses them.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_SESSION_SERVER_H_
#define GRADCUBE_DATAPLANE_DAEMON_SESSION_SERVER_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "dataplane/daemon/control_loop.h"
#include "dataplane/daemon/job_coordinator.h"

namespace gradcube::dataplane {

class SessionServer final : public MemberChannel {
 public:
  // sockets[server] is the path to listen on. Throws control::SetupError.
  SessionServer(ControlLoop& loop, Cluster& cluster, std::vector<std::filesystem::path> sockets,
                std::uint32_t nonce_seed);
  ~SessionServer() override;
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;

  JobCoordinator& jobs() { return jobs_; }

  // Turns away those who have connected and never said hello.
  void expire_silent();

  void notify(MemberId member, const shared::Notice& notice) override;
  void evict(MemberId member, std::int32_t code, const std::string& message) override;

 private:
  using SteadyClock = std::chrono::steady_clock;

  struct Connection {
    bcube::ServerId server = 0;
    MemberId member = 0;  // 0: has not said hello yet
    std::uint32_t pid = 0;
    std::uint32_t uid = 0;
    int process = -1;  // pidfd of the trainer
    SteadyClock::time_point since;
  };

  void listen_at(bcube::ServerId server, const std::filesystem::path& path);
  void accept(int listener, bcube::ServerId server);
  void watch_process(int socket);
  void read(int socket);
  void welcome(int socket, Connection& connection, const shared::Hello& hello);
  void answer(int socket, const Connection& connection, const shared::Inquiry& inquiry);
  void end(int socket, Departure departure, const std::string& reason);
  void close_connection(int socket);

  ControlLoop& loop_;
  Cluster& cluster_;
  std::vector<std::filesystem::path> paths_;
  std::vector<int> listeners_;
  std::map<int, Connection> connections_;  // by socket
  std::map<MemberId, int> sockets_;
  JobCoordinator jobs_;
};

}  // namespace gradcube::dataplane

#endif
