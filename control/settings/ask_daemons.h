// Asks daemons of this host on their control sockets, several at once: of each one connection, one
// line of JSON as the request, and one line as the answer.
//
// Threads: any, one at a time. The call blocks until all have answered or the deadline has passed.
#ifndef GRADCUBE_CONTROL_SETTINGS_ASK_DAEMONS_H_
#define GRADCUBE_CONTROL_SETTINGS_ASK_DAEMONS_H_

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::control {

// Within it a daemon of this host answers what takes it no time.
inline constexpr auto kAnswerPatience = std::chrono::seconds(2);

struct DaemonAnswer {
  nlohmann::ordered_json answer;  // null when there is none
  std::string why;                // there is none
  bool refused = false;           // because the daemon has said this
  bool usage = false;             // because it refuses the request as wrong
  int error = 0;                  // errno, because its socket cannot be reached
};

// Reads what a daemon says in one line, on its socket or of its start.
DaemonAnswer read_answer(std::string_view line);

// In the order of the sockets. An answer is an object whose "ok" is true.
std::vector<DaemonAnswer> ask_daemons(const std::vector<std::filesystem::path>& sockets,
                                      const nlohmann::ordered_json& request,
                                      std::chrono::milliseconds patience);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_ASK_DAEMONS_H_
