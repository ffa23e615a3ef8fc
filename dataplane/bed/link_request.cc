#include "dataplane/bed/link_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

using control::UsageError;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kKeys[] = {"command", "server", "level", "port",
                                      "switch",  "clear",  "up"};
constexpr std::string_view kProbabilities[] = {"loss", "duplicate", "reorder", "corrupt"};

void check_keys(const nlohmann::json& request) {
  for (const auto& [key, value] : request.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
    if (std::find(std::begin(kProbabilities), std::end(kProbabilities), key) !=
        std::end(kProbabilities)) {
      throw UsageError(
          fmt::format("impair: {} is for emulated switches, those of the embedded and the memif "
                      "fabric; links of the veth fabric can be taken down and up",
                      key));
    }
    throw UsageError(
        fmt::format("impair: unknown key {}; expected up, clear, server, level, port and switch",
                    control::quoted(key)));
  }
}

std::string text_of(const nlohmann::json& request, const char* key) {
  if (!request[key].is_string()) {
    throw UsageError(fmt::format("impair: \"{}\" must be a text", key));
  }
  return request[key].get<std::string>();
}

std::optional<bool> flag_of(const nlohmann::json& request, const char* key) {
  if (!request.contains(key)) return std::nullopt;
  if (!request[key].is_boolean()) {
    throw UsageError(fmt::format("impair: \"{}\" must be true or false", key));
  }
  return request[key].get<bool>();
}

unsigned number_of(const nlohmann::json& value, std::string_view what, unsigned count) {
  // A negative number becomes one that is too large.
  if (!value.is_number_integer() || value.get<std::uint64_t>() >= count) {
    throw UsageError(fmt::format("impair: {} {}: this cluster has the {}s 0 to {}", what,
                                 control::printable(value.dump()), what, count - 1));
  }
  return value.get<unsigned>();
}

Json report_of(bool up) {
  Json json;
  for (const std::string_view name : kProbabilities) json[std::string(name)] = 0.0;
  json["up"] = up;
  return json;
}

}  // namespace

std::vector<std::size_t> select_links(const control::Topology& topology,
                                      std::span<const BedLink> links,
                                      const nlohmann::json& request) {
  std::optional<bcube::ServerId> server;
  std::optional<unsigned> level;
  std::optional<std::string> switch_name;
  if (request.contains("server")) {
    server = control::parse_server(topology, text_of(request, "server"), "impair:");
  }
  std::optional<unsigned> port;
  if (request.contains("level")) level = number_of(request["level"], "level", topology.levels());
  if (request.contains("port")) port = number_of(request["port"], "port", topology.ports());
  if (request.contains("switch")) switch_name = text_of(request, "switch");

  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const BedLink& link = links[i];
    if (link.server == server.value_or(link.server) && link.level == level.value_or(link.level) &&
        link.server_port == port.value_or(link.server_port) &&
        link.switch_name == switch_name.value_or(link.switch_name)) {
      chosen.push_back(i);
    }
  }
  if (chosen.empty()) {
    throw UsageError(
        fmt::format("impair: no link is selected: no link of a switch {} fits; the first switch is "
                    "{}",
                    control::quoted(switch_name.value_or("")), links.front().switch_name));
  }
  return chosen;
}

LinkRequest read_link_request(const control::Topology& topology, std::span<const BedLink> links,
                              const nlohmann::json& request) {
  check_keys(request);
  LinkRequest result;
  result.links = select_links(topology, links, request);
  const std::optional<bool> clear = flag_of(request, "clear");
  result.up = flag_of(request, "up");
  if (clear == true && !result.up.has_value()) result.up = true;
  return result;
}

nlohmann::ordered_json link_report(const control::Topology& topology,
                                   std::span<const BedLink> links, const std::vector<bool>& up,
                                   std::uint64_t seed) {
  const bool common = std::find(up.begin(), up.end(), true) != up.end();
  Json impairments = report_of(common);
  impairments["seed"] = seed;
  Json differing = Json::array();
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (up[i] == common) continue;
    Json one = {{"server", control::address_json(topology.space(), links[i].server)},
                {"level", links[i].level},
                {"port", links[i].server_port},
                {"switch", links[i].switch_name}};
    one.update(report_of(up[i]));
    differing.push_back(std::move(one));
  }
  return {{"impairments", std::move(impairments)}, {"impaired_links", std::move(differing)}};
}

}  // namespace gradcube::dataplane
