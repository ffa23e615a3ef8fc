// What `gradcube up --hosts` takes: the hosts of a cluster, in the order of their servers.
//
//     node1,node2,node3                          a list; names, or addresses
//     10.0.0.1,10.1.0.1 10.0.0.2,10.1.0.2        an address for each port of a server
//     FILE                                       a line for each host, # begins a comment:
//         node1
//         alice@node2 10.0.0.2                   how the launcher calls it, and its addresses
//         node3 slots=4                          what Open MPI's files have besides is passed over
//
// Names are looked up here. One that means this host alone (127.0.1.1 in many an /etc/hosts) is
// refused, because other hosts cannot reach it. Errors are control::UsageError, and SetupError
// where a name has no address.
#ifndef GRADCUBE_CLI_UP_HOSTS_OPTION_H_
#define GRADCUBE_CLI_UP_HOSTS_OPTION_H_

#include <string>
#include <vector>

#include "control/settings/host_list.h"

namespace gradcube::cli {

struct NamedHosts {
  std::vector<std::string> names;
  std::string addresses;  // as control::parse_hosts() reads them
};

NamedHosts read_hosts_option(const std::string& text);

// The names of hosts of which only the addresses are known.
std::vector<std::string> host_names(const control::HostList& hosts);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_HOSTS_OPTION_H_
