// Asks several daemons at once, on their control sockets.
//
// Threads: any, one at a time. The call blocks until all have answered or the deadline has passed.
#ifndef GRADCUBE_DATAPLANE_BED_ASK_SERVERS_H_
#define GRADCUBE_DATAPLANE_BED_ASK_SERVERS_H_

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gradcube::dataplane {

// Within it a daemon of this host answers what takes it no time.
inline constexpr auto kAnswerPatience = std::chrono::seconds(2);

struct ServerAnswer {
  nlohmann::ordered_json answer;  // null when there is none
  std::string why;                // there is none
  bool usage = false;             // because the daemon refuses the request as wrong
};

// In the order of the sockets. An answer is an object whose "ok" is true.
std::vector<ServerAnswer> ask_servers(const std::vector<std::filesystem::path>& sockets,
                                      const nlohmann::ordered_json& request,
                                      std::chrono::milliseconds patience);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_ASK_SERVERS_H_
