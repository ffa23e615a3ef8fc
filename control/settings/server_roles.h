// The role of a cluster's servers in jobs. Most take trainers. An AGGREGATOR takes none: it is
// there to aggregate the hubs of jobs on the others, as PHub's PBox is (docs/hub.md, "A server
// without trainers"). All else it does as they do: it relays, greets and answers.
//
// All servers of a cluster know the aggregators: whoever is on "all servers" is on those that take
// trainers, and what such a job runs goes by which they are.
//
// Pure functions; any thread.
#ifndef GRADCUBE_CONTROL_SETTINGS_SERVER_ROLES_H_
#define GRADCUBE_CONTROL_SETTINGS_SERVER_ROLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Ascending, none twice.
using Aggregators = std::vector<ServerId>;

// Reads addresses as parse_absent() does: "2,1 2,2". Throws a UsageError that begins with `where`.
Aggregators parse_aggregators(const Topology& topology, std::string_view text,
                              std::string_view where);
// What parse_aggregators() reads. Empty if there are none.
std::string aggregators_text(const Topology& topology, const Aggregators& aggregators);

// Throws a UsageError unless all of them are servers that are there, and another one is.
void validate_aggregators(const Topology& topology, const Aggregators& aggregators);

bool is_aggregator(const Aggregators& aggregators, ServerId server);

// The servers that take trainers: those of a job that names none. Ascending.
std::vector<ServerId> trainers_servers(const Topology& topology, const Aggregators& aggregators);
Placement place_on_trainers_servers(const Topology& topology, const Aggregators& aggregators);

// Throws a UsageError that begins with `where` if one of them takes no trainers.
void require_trainers_servers(const Topology& topology, const Aggregators& aggregators,
                              const std::vector<ServerId>& members, std::string_view where);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_SERVER_ROLES_H_
