#include "dataplane/bed/merged_links.h"

#include <algorithm>
#include <utility>

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

control::Impairments read_impairments(const Json& json) {
  control::Impairments impairments;
  for (const control::Probability& one : control::kProbabilities) {
    impairments.*one.member = json.value(one.name, 0.0);
  }
  impairments.mtu = json.value("mtu", 0U);
  impairments.up = json.value("up", true);
  return impairments;
}

// What holds for the links of a part that it does not list. Where its switches are not there, they
// are down.
control::Impairments common_of(const Json& report) {
  if (!report.is_object()) return {.up = false};
  return read_impairments(report.value("impairments", Json::object()));
}

// What a part lists of a server's port, or holds for all of its links.
control::Impairments impairments_of(const Json& report, const Json& address, unsigned port) {
  const Json listed =
      report.is_object() ? report.value("impaired_links", Json::array()) : Json::array();
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const Json& one) {
    return one.value("server", Json()) == address && one.value("port", Json()) == port;
  });
  return found == listed.end() ? common_of(report) : read_impairments(*found);
}

}  // namespace

Json merged_links(const control::Topology& topology, const std::vector<BedLink>& links,
                  const control::SwitchParts& parts, std::uint64_t seed,
                  const std::vector<Json>& reports) {
  const auto answered = std::find_if(reports.begin(), reports.end(),
                                     [](const Json& report) { return report.is_object(); });
  const control::Impairments common = common_of(answered == reports.end() ? Json() : *answered);
  std::vector<control::Impairments> own;
  for (const BedLink& link : links) {
    own.push_back(impairments_of(reports.at(parts.of(link.server, link.server_port)),
                                 control::address_json(topology.space(), link.server),
                                 link.server_port));
  }
  Json merged = link_report(topology.space(), names_of(links), own, common, seed);
  Json switches = Json::array();
  for (const Json& report : reports) {
    if (!report.is_object()) continue;
    for (const Json& one : report.value("switches", Json::array())) switches.push_back(one);
  }
  merged["switches"] = std::move(switches);
  return merged;
}

}  // namespace gradcube::dataplane
