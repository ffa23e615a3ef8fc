// The request {"command":"impair",...} of the control socket, which changes what goes wrong on
// links while the cluster runs, and the report of it. Emulated switches do all of it; the kernel's
// links of a test bed are taken down and up.
//
// A link is between a server and a switch; its probabilities concern the frames that the server
// sends. A link that is down carries no frames in either direction. Keys, all optional:
//
//   "server": "2,1", "level": 1, "port": 1, "switch": "1/[*,2]"
//                                                  which links: those that fit every key given
//   "clear": true                                  no faults: all probabilities 0, links up
//   "loss", "duplicate", "reorder", "corrupt": 0.01     probabilities, after "clear"
//   "mtu": 1400                                    bytes of the longest IP packet that passes of
//                                                  what the server sends; 0: any; after "clear"
//   "up": false                                    takes links down, true: up; after "clear"
//
// What no key names stays as it is.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_LINK_REQUEST_H_
#define GRADCUBE_DATAPLANE_BED_LINK_REQUEST_H_

#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "control/plan/base/topology.h"
#include "control/settings/impairments.h"

namespace gradcube::dataplane {

// A link as requests and reports name it.
struct NamedLink {
  bcube::ServerId server = 0;
  unsigned level = 0;
  unsigned server_port = 0;  // its number among the server's
  std::string switch_name;   // "1/[*,1]", as people know it
};

// What becomes of the impairments of the links that are chosen.
struct LinkChange {
  bool clear = false;
  std::array<std::optional<double>, std::size(control::kProbabilities)> probabilities;
  std::optional<std::uint32_t> mtu;
  std::optional<bool> up;

  control::Impairments applied_to(control::Impairments impairments) const;
};

struct LinkRequest {
  std::vector<std::size_t> links;  // their indices
  LinkChange change;
};

// Which links there are.
enum class LinkKind : std::uint8_t { emulated, of_kernel };

// links: of servers of the topology; all that this process knows. Throws a control::UsageError,
// which names what is accepted.
LinkRequest read_link_request(const control::Topology& topology,
                              const std::vector<NamedLink>& links, LinkKind kind,
                              const nlohmann::json& request);

// {"impairments":{"loss":..,"duplicate":..,"reorder":..,"corrupt":..,"up":true,"seed":..},
//  "impaired_links":[{"server":[2,1],"level":1,"port":1,"switch":"1/[*,1]","loss":..,...}]}
// "mtu" stands with them where a link has one. The first is `common`, which holds for every link
// that is not in the list. own[i]: of link i.
nlohmann::ordered_json link_report(const bcube::AddressSpace& space,
                                   const std::vector<NamedLink>& links,
                                   const std::vector<control::Impairments>& own,
                                   const control::Impairments& common, std::uint64_t seed);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_LINK_REQUEST_H_
