#include "dataplane/daemon/switch_status.h"

#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

Json switches_json(const EmbeddedFabric& fabric) {
  Json switches = Json::array();
  for (const EmbeddedFabric::SwitchAt& at : fabric.switches()) {
    SwitchPortCounts sum;
    for (std::uint16_t port = 0; port < at.fabric->ports(); ++port) {
      add_counters(sum, at.fabric->counts(port));
    }
    Json one = {{"name", at.name}, {"level", at.level}};
    one.update(counters_json(sum));
    switches.push_back(std::move(one));
  }
  return switches;
}

}  // namespace gradcube::dataplane
