// The request {"command":"paths",...} of the control socket: what a server of this daemon finds out
// about its parallel paths to another server.
//
//   "from": "0,0", "to": "2,1"    servers; the first one runs in this daemon
//   "begin": true                 probes the paths anew
//
// The answer comes later than the request returns, so whoever asks begins once, and then asks
// without "begin" until it is "ready".
//
// The control thread's.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_PATHS_REQUEST_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_PATHS_REQUEST_H_

#include <nlohmann/json.hpp>

#include "dataplane/daemon/local_cluster.h"

namespace gradcube::dataplane {

// {"ready":true,"paths":[{"hops":[[0,1],[1,2]],"state":"answers","round_trip_ns":81000,
//  "left_bps":150000000}]}
// A hop is a level and a digit. state: answers, silent (no answer came) or down (a link of it is
// known to be). The other two are null unless it answers; left_bps also where links have no rate.
// Throws control::UsageError, which names what is accepted.
nlohmann::ordered_json paths_report(LocalCluster& cluster, const nlohmann::json& request);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_PATHS_REQUEST_H_
