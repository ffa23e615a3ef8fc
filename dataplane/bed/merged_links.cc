#include "dataplane/bed/merged_links.h"

#include <algorithm>
#include <utility>

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

// Of a link whose switch is not there.
Json down() {
  return {{"loss", 0.0}, {"duplicate", 0.0}, {"reorder", 0.0}, {"corrupt", 0.0}, {"up", false}};
}

// What holds for the links of a part that it does not list.
Json common_of(const Json& report) {
  if (!report.is_object()) return down();
  Json common = report.value("impairments", Json::object());
  common.erase("seed");
  return common;
}

// What a part lists of a server's port, or holds for all of its links.
Json impairments_of(const Json& report, const Json& address, unsigned port) {
  const Json listed =
      report.is_object() ? report.value("impaired_links", Json::array()) : Json::array();
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const Json& one) {
    return one.value("server", Json()) == address && one.value("port", Json()) == port;
  });
  if (found == listed.end()) return common_of(report);
  Json impairments = *found;
  for (const char* key : {"server", "level", "port", "switch"}) impairments.erase(key);
  return impairments;
}

}  // namespace

Json merged_links(const control::Topology& topology, std::span<const BedLink> links,
                  const control::SwitchParts& parts, std::uint64_t seed,
                  const std::vector<Json>& reports) {
  const auto answered = std::find_if(reports.begin(), reports.end(),
                                     [](const Json& report) { return report.is_object(); });
  Json common = common_of(answered == reports.end() ? Json() : *answered);
  Json differing = Json::array();
  for (const BedLink& link : links) {
    const Json address = control::address_json(topology.space(), link.server);
    const Json own = impairments_of(reports.at(parts.of(link.server, link.server_port)), address,
                                    link.server_port);
    if (own == common) continue;
    Json one = {{"server", address},
                {"level", link.level},
                {"port", link.server_port},
                {"switch", link.switch_name}};
    one.update(own);
    differing.push_back(std::move(one));
  }
  Json switches = Json::array();
  for (const Json& report : reports) {
    if (!report.is_object()) continue;
    for (const Json& one : report.value("switches", Json::array())) switches.push_back(one);
  }
  common["seed"] = seed;
  return {{"impairments", std::move(common)},
          {"impaired_links", std::move(differing)},
          {"switches", std::move(switches)}};
}

}  // namespace gradcube::dataplane
