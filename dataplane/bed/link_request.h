// The request {"command":"impair",...} to a test bed: takes links down and up. Keys, all optional:
//
//   "server": "2,1", "level": 1, "switch": "1/[*,2]"    which links: those that fit every key given
//   "up": false                                         takes them down, true: up
//   "clear": true                                       takes them up, unless "up" says otherwise
//
// The keys and the report are those of the embedded fabric (impair_request.h), which can do more.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_LINK_REQUEST_H_
#define GRADCUBE_DATAPLANE_BED_LINK_REQUEST_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "control/plan/base/topology.h"
#include "dataplane/bed/bed_links.h"

namespace gradcube::dataplane {

struct LinkRequest {
  std::vector<std::size_t> links;  // their indices
  std::optional<bool> up;          // what they become; nothing: they stay as they are
};

// The indices of the links that a request is about, whatever it asks for. links: of the topology.
// Throws a control::UsageError, which says what is accepted.
std::vector<std::size_t> select_links(const control::Topology& topology,
                                      std::span<const BedLink> links,
                                      const nlohmann::json& request);

// links: of the topology. Throws a control::UsageError, which says what is accepted.
LinkRequest read_link_request(const control::Topology& topology, std::span<const BedLink> links,
                              const nlohmann::json& request);

// "impairments" and "impaired_links", as impairments_report() says. up[i] is of link i.
nlohmann::ordered_json link_report(const control::Topology& topology,
                                   std::span<const BedLink> links, const std::vector<bool>& up,
                                   std::uint64_t seed);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_LINK_REQUEST_H_
