// A status of several daemons, put together from theirs: those of a test bed, or of a cluster whose
// daemons are on separate hosts.
//
// It has the fields of an embedded cluster's status (form.h says how each is put together), so
// whoever reads that can read this. In "servers" there is an entry for every server. It also says
// "pid", and "why" where the daemon has ended or does not answer; then it has no "trainers" and no
// "ports".
//
// Pure functions. They take time in the length of the statuses, but for sorting a job's trainers.
#ifndef GRADCUBE_CONTROL_STATUS_MERGED_STATUS_H_
#define GRADCUBE_CONTROL_STATUS_MERGED_STATUS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

#include "control/settings/cluster_settings.h"

namespace gradcube::control::status {

// What is known of a server.
struct ServerReport {
  bcube::ServerId server = 0;
  std::string socket;             // its trainers'
  pid_t pid = 0;                  // of its daemon
  nlohmann::ordered_json status;  // its daemon's, null if there is none
  std::string why;                // there is none
  bool ended = false;             // its daemon has
};

// own: what the daemon that puts them together says itself, whatever the others and the settings
// say: "version", "pid", "uptime_seconds", "algorithm", "switches", and "fabric" if it is none of a
// test bed's.
nlohmann::ordered_json merged_status(nlohmann::ordered_json own, const ClusterSettings& settings,
                                     const std::vector<ServerReport>& servers);

// The settings that a status shows.
nlohmann::ordered_json settings_json(const ClusterSettings& settings);

}  // namespace gradcube::control::status

#endif  // GRADCUBE_CONTROL_STATUS_MERGED_STATUS_H_
