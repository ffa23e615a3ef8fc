#include "dataplane/daemon/switch_status.h"

#include <string>
#include <utility>

#include "dataplane/daemon/impair_request.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

// "uplink [0]-[3]", and of the way back "downlink [0]-[3]".
std::string trunk_name(const bcube::AddressSpace& space, const TrunkTree::TrunkAt& trunk) {
  return (trunk.up ? "uplink " : "downlink ") + space.text(trunk.first_place) + "-" +
         space.text(trunk.last_place);
}

}  // namespace

Json switches_report(const EmbeddedFabric& fabric, std::uint64_t seed) {
  Json switches = Json::array();
  for (const EmbeddedFabric::SwitchAt& at : fabric.switches()) {
    SwitchPortCounts sum;
    for (std::uint16_t port = 0; port < at.fabric->ports(); ++port) {
      add_counters(sum, at.fabric->counts(port));
    }
    Json one = {{"name", at.name}, {"level", at.level}};
    one.update(counters_json(sum));
    switches.push_back(std::move(one));
    for (const EmulatedSwitch::TrunkCounts& trunk : at.fabric->trunk_counts()) {
      const bcube::AddressSpace& space = fabric.space();
      Json row = {{"name", trunk_name(space, trunk.at)}, {"level", trunk.at.level}};
      row.update(counters_json(trunk.counts));
      switches.push_back(std::move(row));
    }
  }
  Json report = impairments_report(fabric, seed);
  report["switches"] = std::move(switches);
  return report;
}

}  // namespace gradcube::dataplane
