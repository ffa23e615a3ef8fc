#include "dataplane/daemon/switch_requests.h"

#include <string>
#include <utility>
#include <vector>

#include "dataplane/bed/link_request.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

namespace {

using Json = nlohmann::ordered_json;
using LinkAt = EmbeddedFabric::LinkAt;

std::vector<NamedLink> named_links(const EmbeddedFabric& fabric) {
  std::vector<NamedLink> links;
  for (const LinkAt& link : fabric.links()) {
    links.push_back({.server = link.server,
                     .level = link.level,
                     .server_port = link.server_port,
                     .switch_name = fabric.switches()[link.switch_index].name});
  }
  return links;
}

// "uplink [0]-[3]", and of the way back "downlink [0]-[3]".
std::string trunk_name(const bcube::AddressSpace& space, const TrunkTree::TrunkAt& trunk) {
  return (trunk.up ? "uplink " : "downlink ") + space.text(trunk.first_place) + "-" +
         space.text(trunk.last_place);
}

}  // namespace

nlohmann::ordered_json impair(EmbeddedFabric& fabric, const control::Topology& topology,
                              const nlohmann::json& request, std::uint64_t seed) {
  const LinkRequest read =
      read_link_request(topology, named_links(fabric), LinkKind::emulated, request);
  std::vector<LinkAt> links;
  for (const std::size_t link : read.links) links.push_back(fabric.links()[link]);
  const std::size_t changed = fabric.change_impairments(
      links, [&](const Impairments& impairments) { return read.change.applied_to(impairments); });
  nlohmann::ordered_json answer = {{"changed", changed}};
  answer.update(impairments_report(fabric, seed));
  return answer;
}

nlohmann::ordered_json impairments_report(const EmbeddedFabric& fabric, std::uint64_t seed) {
  std::vector<Impairments> own;
  for (const LinkAt& link : fabric.links()) own.push_back(fabric.impairments(link));
  return link_report(fabric.space(), named_links(fabric), own, fabric.impairments(), seed);
}

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
