// The telemetry commands /gradcube/status, links, jobs, hubs and counters: parts of what `gradcube
// status --json` shows, under the names of docs/counters.md.
//
// A status is asked for when a client asks, and then serves all requests of the next 100 ms:
// however often clients ask, the pollers copy their counters at most ten times in a second, between
// two iterations.
//
// Threads: the control thread. The views are pure functions.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_STATUS_TELEMETRY_H_
#define GRADCUBE_DATAPLANE_SOCKETS_STATUS_TELEMETRY_H_

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "dataplane/sockets/telemetry_server.h"

namespace gradcube::dataplane {

// What is one number or word, the topology and the rates, and how many servers, links, jobs
// and hubs there are.
nlohmann::ordered_json status_view(const nlohmann::ordered_json& status);

// The ports of the servers that are here by name: "2-1:0" is port 0 of server [2,1]. which: one
// link, all of one server ("2-1"), or empty for all. Throws control::UsageError if there is none.
nlohmann::ordered_json links_view(const nlohmann::ordered_json& status, std::string_view which);

// Jobs by name, with "#" and its id where two have the same. which: one, or empty for all.
nlohmann::ordered_json jobs_view(const nlohmann::ordered_json& status, std::string_view which);

// The hubs that servers aggregate for jobs of others, by the job's name, as jobs_view() has jobs.
nlohmann::ordered_json hubs_view(const nlohmann::ordered_json& status, std::string_view which);

class StatusTelemetry {
 public:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr auto kFreshFor = std::chrono::milliseconds(100);

  // Adds the commands. status: as status.h describes it. Must outlive the server's last request.
  StatusTelemetry(TelemetryServer& server, std::function<nlohmann::ordered_json()> status,
                  std::function<SteadyClock::time_point()> now = SteadyClock::now);
  StatusTelemetry(const StatusTelemetry&) = delete;
  StatusTelemetry& operator=(const StatusTelemetry&) = delete;

 private:
  const nlohmann::ordered_json& recent();

  std::function<nlohmann::ordered_json()> status_;
  std::function<SteadyClock::time_point()> now_;
  nlohmann::ordered_json recent_;
  SteadyClock::time_point taken_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_SOCKETS_STATUS_TELEMETRY_H_
