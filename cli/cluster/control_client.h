// Talks to the daemon's control socket: one connection, one line of JSON as the request, one line
// of JSON as the answer.
//
// Every call has a deadline. An answer is checked for its outer form ({"ok":true,...} or
// {"ok":false,"error":"message"}); the caller reads the rest with care (json_fields.h). Any thread.
#ifndef GRADCUBE_CLI_CLUSTER_CONTROL_CLIENT_H_
#define GRADCUBE_CLI_CLUSTER_CONTROL_CLIENT_H_

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/settings/run_directory.h"

namespace gradcube::cli {

// The message for a command that needs a cluster where none runs. Where a daemon has ended without
// an order, it says so and names the log.
std::string no_cluster_message(const control::RunDirectory& directory);

// Whether a daemon of this user's was killed there, or ended with an error: its sockets are left,
// until `gradcube down` or the next `gradcube up` removes them.
bool has_leftovers(const control::RunDirectory& directory);

// Whether one does, as far as this user can see: of another user's, the socket alone. Throws a
// SetupError where the directory is closed to this user.
bool runs_here(const control::RunDirectory& directory);

// Throws SetupError with that message, or with what is wrong with the run directory.
void require_cluster(const control::RunDirectory& directory);

// Returns the daemon's answer, whose "ok" is true. Throws the daemon's own message when it refused:
// a UsageError when the request was wrong, else a SetupError. Throws a SetupError when the socket
// fails. `timeout` spans the whole exchange.
nlohmann::json ask_daemon(const control::RunDirectory& directory, const nlohmann::json& request,
                          std::chrono::milliseconds timeout = std::chrono::seconds(10));

// The "status" of the answer to {"command":"status"}. Where there are very many flows, it has none
// of them.
nlohmann::json ask_status(const control::RunDirectory& directory);

// "flow_count" and "flows" of the jobs of these names, or of all if none is named; of very many
// flows the first.
nlohmann::json ask_flows(const control::RunDirectory& directory,
                         const std::vector<std::string>& jobs);

// The status of all servers, those of other hosts too: their daemons are asked by this host's.
nlohmann::json ask_status_of_all(const control::RunDirectory& directory);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_CONTROL_CLIENT_H_
