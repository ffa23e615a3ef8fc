// The cluster file: a cluster's settings as TOML.
//
//     [topology]
//     spec = "bcube:3,2"          # the setting `topology`
//     absent = ["2,1", "2,2"]     # addresses that have no server; or "2,1 2,2"
//     aggregators = ["2,0"]       # servers that take no trainers
//     hosts = [["10.0.0.1", "10.1.0.1"], ...]    # of the udp fabric; or "10.0.0.1,10.1.0.1 ..."
//     interfaces = [["eth1", "eth2"], ...]       # of cabled hosts; or "eth1,eth2 ..."
//     [link]
//     rate = "200mbit"            # or "level0=10gbit,level1=1gbit"
//     [servers."8"]               # a server with ports of its own, by its number
//     rate = "200mbit"            # of each of them
//     ports = 10                  # on a star alone; else 1
//     [impair]
//     loss = 0.001
//     [engine]
//     lcores = [0, 1]             # or "0-1"
//
// kSettings in cluster_settings.h has the keys of each section, what they mean and what they
// accept.
// Every key may be left out. An unknown section, key or value is refused with the file, the line,
// the key and what is accepted.
#ifndef GRADCUBE_CONTROL_SETTINGS_CLUSTER_FILE_H_
#define GRADCUBE_CONTROL_SETTINGS_CLUSTER_FILE_H_

#include <string>
#include <string_view>

#include "control/settings/cluster_settings.h"

namespace gradcube::control {

// Reads the file into settings that hold defaults elsewhere. Throws a UsageError.
ClusterSettings read_cluster_file(const std::string& path);

// The same of text that is already here; `name` is what error messages call it.
ClusterSettings parse_cluster_file(std::string_view text, std::string_view name);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_CLUSTER_FILE_H_
