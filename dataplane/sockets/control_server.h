// The daemon's control socket: one line of JSON for a request, one line of JSON for its answer.
//
//   {"command":"status"}                  {"ok":true,"status":{...}}: status.h
//   {"command":"flows","jobs":["mnist"]}  {"ok":true,"flow_count":2345,"flows":[...]}:
//                                         flows_request.h
//   {"command":"status-of-all"}           the same, or {"ok":true,"inquiry":7}: cluster_status.h
//   {"command":"impair","loss":0.01,...}  {"ok":true,"impairments":{...},...}: switch_requests.h
//   {"command":"down"}                    {"ok":true}, then the daemon ends
//   an error                              {"ok":false,"error":"message"}
//   an error in the request itself        {"ok":false,"usage":true,"error":"message"}
//
// Clients are not trusted. A line has at most 64 KiB, a client has five seconds, and at most 64 are
// served at a time, of all tenants at most 48, of one at most 8. A client that sends more requests
// while 1 MiB of answers is unread is disconnected; one that has shut down its writing side gets
// what it has asked for. Nothing here blocks the control thread: answers leave as the client takes
// them. The daemon answers one line of a client per wake, and kMostAnswers lines of all clients in
// a round of the loop; the others wait for their turn. So no client starves the others, and all of
// them do not starve trainers.
//
// The daemon's own user and root may ask for everything, tenants (allowed_users.h) for what
// add_for_tenants() names. A stranger gets one answer, which says why it gets no other.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_CONTROL_SERVER_H_
#define GRADCUBE_DATAPLANE_SOCKETS_CONTROL_SERVER_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "dataplane/sockets/client_listener.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

class ControlServer {
 public:
  using SteadyClock = std::chrono::steady_clock;
  // Returns the fields of the answer beside "ok": true. Throws control::UsageError when the request
  // is wrong, another exception when it could not be carried out.
  using Command = std::function<nlohmann::ordered_json(const nlohmann::json& request)>;

  static constexpr unsigned kMostAnswers = 2;
  static constexpr std::size_t kMostOfTenant = 8;
  static constexpr std::size_t kMostOfTenants = 48;

  // Throws control::SetupError.
  ControlServer(ControlLoop& loop, const std::filesystem::path& socket, AllowedUsers users = {});
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  void add(const std::string& name, Command command) { commands_[name].own = std::move(command); }
  // The same for long answers that were written elsewhere: returns the whole answer, "ok" included.
  using TextCommand = std::function<std::string(const nlohmann::json& request)>;
  void add_text(const std::string& name, TextCommand command) {
    commands_[name].text = std::move(command);
  }
  // What a tenant gets; user: which one.
  using TenantCommand =
      std::function<nlohmann::ordered_json(const nlohmann::json& request, uid_t user)>;
  void add_for_tenants(const std::string& name, TenantCommand command) {
    commands_[name].of_tenants = std::move(command);
  }
  // To be called after every round of the loop: goes on with the answers, and disconnects slow
  // clients.
  void tick(SteadyClock::time_point now);
  // Whether every answer to its own user and root has left.
  bool all_answered() const;

 private:
  struct Client {
    std::string received;
    std::string answer;
    std::size_t sent = 0;  // of the answer
    uid_t user = 0;
    Standing standing = Standing::stranger;
    SteadyClock::time_point since;
    bool paused = false;  // not read while a whole line waits, or when it has ended
    bool ended = false;   // sends nothing more, and may still read
  };

  // Of a command; `text` in the place of `own`. Without `of_tenants` it is not for them.
  struct Handlers {
    Command own;
    TextCommand text;
    TenantCommand of_tenants;
  };

  void accept(const Accepted& accepted);
  void read(int socket);
  void answer_line(int socket);
  bool write(int socket);
  void close_client(int socket);
  std::string objection(const Accepted& accepted) const;
  std::string answer_to(const Client& client, const std::string& line);

  ControlLoop& loop_;
  std::map<int, Client> clients_;
  std::map<std::string, Handlers> commands_;
  unsigned answers_left_ = kMostAnswers;  // in this round
  int last_answered_ = -1;                // whose turn is over, of those who wait
  ClientListener listener_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_CONTROL_SERVER_H_
