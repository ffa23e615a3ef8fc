#include "cli/plan/asked_topology.h"

#include <utility>

#include "control/settings/cluster_settings.h"

namespace gradcube::cli {

control::Topology asked_topology(const std::string& topology, const std::string& absent,
                                 const std::string& rate, const std::string& oversubscription) {
  control::ClusterSettings settings;
  for (const auto& [name, text] :
       {std::pair("topology", topology), std::pair("absent", absent), std::pair("rate", rate),
        std::pair("oversubscription", oversubscription)}) {
    if (!text.empty()) control::apply_setting(settings, name, text, std::string("--") + name);
  }
  settings.link_rates().validate(settings.topology);
  return settings.rated_topology();
}

}  // namespace gradcube::cli
