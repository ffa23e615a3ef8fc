// What the daemon of one server of a test bed is started with.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_SERVER_SETTINGS_H_
#define GRADCUBE_DATAPLANE_BED_SERVER_SETTINGS_H_

#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::dataplane {

// The cluster's, but that the servers take the cores in turn, server_lcores of them each, and
// divide the memory of packets and of trainers. cores: at least so many.
control::ClusterSettings server_settings(control::ClusterSettings settings, bcube::ServerId server,
                                         const std::vector<unsigned>& cores);

// The program and its arguments, without --ready-fd and --parent. settings: of the server. ports:
// those that tell it of its ports. directory: of the cluster, which gets the trainers' socket.
std::vector<std::string> server_program(const std::string& executable,
                                        const control::ClusterSettings& settings,
                                        bcube::ServerId server,
                                        const std::vector<std::string>& ports,
                                        const control::RunDirectory& directory);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_SERVER_SETTINGS_H_
