// The daemon's telemetry socket, which dpdk-telemetry.py reads: DPDK's protocol (version 2) over
// SOCK_SEQPACKET, a message for a request and a message for its answer.
//
//   on connection                 {"version":"...","pid":1,"max_output_len":131072}
//   /                             {"/":["/","/gradcube/counters",...]}: the commands
//   /help,/gradcube/links         {"/help":{"/gradcube/links":"..."}}
//   /gradcube/links,2-1:0         {"/gradcube/links":{...}}: a command, and after a comma its
//                                 parameter
//   anything else                 {"what was asked for":null}
//   a wrong parameter             {"/gradcube/links":{"error":"message"}}
//
// DPDK serves its own socket (rte_telemetry) on threads of its own, which cannot be ended: they
// would outlive what they read. So EAL runs without it, and this is all that answers here.
//
// Clients are not trusted. A request has at most 1023 bytes and an answer 128 KiB; a client that
// does not take its answers is disconnected. At most 10 are connected, and one more takes the place
// of the one that has been quiet for the longest. One request of a client is answered per wake, so
// no client starves the others.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_TELEMETRY_SERVER_H_
#define GRADCUBE_DATAPLANE_SOCKETS_TELEMETRY_SERVER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "dataplane/sockets/client_listener.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

class TelemetryServer {
 public:
  // Returns the answer's value. Throws control::UsageError when the parameter, which is empty if
  // there is none, is wrong.
  using Command = std::function<nlohmann::ordered_json(std::string_view parameter)>;

  static constexpr std::size_t kLongestAnswer = 128 * 1024;
  static constexpr std::size_t kMostClients = 10;

  // version: what the clients are told. Throws control::SetupError.
  TelemetryServer(ControlLoop& loop, const std::filesystem::path& socket, std::string version);
  ~TelemetryServer();
  TelemetryServer(const TelemetryServer&) = delete;
  TelemetryServer& operator=(const TelemetryServer&) = delete;

  // name: begins with '/', and has no comma.
  void add(const std::string& name, std::string help, Command command);

  // The answer to a request, in one line.
  std::string answer_to(std::string_view request) const;

 private:
  struct Entry {
    std::string help;
    Command command;
  };

  void accept(const Accepted& accepted);
  void read(int socket);
  void send_answer(int socket, const std::string& answer);
  void close_client(int socket);
  void make_room();

  ControlLoop& loop_;
  std::string version_;
  std::map<std::string, Entry, std::less<>> commands_;
  std::map<int, std::uint64_t> clients_;  // and when each was heard last, in requests
  std::uint64_t heard_ = 0;
  ClientListener listener_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_TELEMETRY_SERVER_H_
