// `gradcube check` on all hosts of a cluster at the same time, as one.
#ifndef GRADCUBE_CLI_CHECKS_HOSTS_CHECK_H_
#define GRADCUBE_CLI_CHECKS_HOSTS_CHECK_H_

#include <vector>

#include "cli/checks/link_check.h"
#include "cli/cluster/cluster_hosts.h"
#include "cli/launch/host_group.h"
#include "cli/text/report.h"

namespace gradcube::cli {

// Of each link what both of its hosts have found: the worse of two figures, and all segments. The
// settings' job is not used. Throws a SetupError that names the hosts that cannot measure.
std::vector<LinkResult> check_hosts(HostGroup& group, const ClusterHosts& hosts,
                                    const LinkCheckSettings& settings);

// As links_report(), and whether ports share a NIC.
Report hosts_check_report(const ClusterHosts& hosts, const std::vector<LinkResult>& results,
                          bool all);

bool all_right(const std::vector<LinkResult>& results);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CHECKS_HOSTS_CHECK_H_
