#include "dataplane/daemon/impair_request.h"

#include <vector>

#include "dataplane/bed/link_request.h"

namespace gradcube::dataplane {

namespace {

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

}  // namespace gradcube::dataplane
