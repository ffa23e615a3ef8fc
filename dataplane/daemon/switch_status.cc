#include "dataplane/daemon/switch_status.h"

#include <utility>

#include "dataplane/daemon/impair_request.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

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
  }
  Json report = impairments_report(fabric, seed);
  report["switches"] = std::move(switches);
  return report;
}

}  // namespace gradcube::dataplane
