#include "dataplane/daemon/process/paths_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "bcube_forwarding/path_set.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/plan/base/topology.h"

namespace gradcube::dataplane {

namespace {

using bcube::PathNews;
using bcube::Route;
using control::UsageError;
using Json = nlohmann::ordered_json;

struct Request {
  bcube::ServerId from = 0;
  bcube::ServerId to = 0;
  bool begin = false;
};

bcube::ServerId server_of(const control::Topology& topology, const nlohmann::json& request,
                          const char* key) {
  if (!request.contains(key) || !request[key].is_string()) {
    throw UsageError(fmt::format("paths: \"{}\" must be a server's address: \"0,0\"", key));
  }
  return control::parse_server(topology, request[key].get<std::string>(), "paths:");
}

Request read_request(const control::Topology& topology, const nlohmann::json& request) {
  Request read{server_of(topology, request, "from"), server_of(topology, request, "to")};
  for (const auto& [key, value] : request.items()) {
    if (key == "command" || key == "from" || key == "to") continue;
    if (key != "begin" || !value.is_boolean()) {
      throw UsageError(fmt::format("paths: {}: {}; expected from, to and begin: true or false",
                                   control::quoted(key), control::printable(value.dump())));
    }
    read.begin = value.get<bool>();
  }
  if (read.from == read.to) {
    throw UsageError(fmt::format("paths: from and to are both server {}; expected two",
                                 topology.space().text(read.from)));
  }
  return read;
}

Json path_json(const Route& route, const char* state, const PathNews* news) {
  Json path = {{"hops", Json::array()}, {"state", state}};
  for (const bcube::Hop& hop : route) path["hops"].push_back({hop.level, hop.digit});
  const bool bounded = news != nullptr && news->bits_per_second_left != UINT64_MAX;
  path["round_trip_ns"] = news != nullptr ? Json(news->round_trip) : Json();
  path["left_bps"] = bounded ? Json(news->bits_per_second_left) : Json();
  return path;
}

}  // namespace

nlohmann::ordered_json paths_report(LocalCluster& cluster, const nlohmann::json& request) {
  const control::Topology& topology = cluster.topology();
  const Request asked = read_request(topology, request);
  if (cluster.nodes().find(asked.from) == nullptr) {
    throw UsageError(
        fmt::format("paths: server {} is not run by this daemon; ask the one that does",
                    topology.space().text(asked.from)));
  }
  std::optional<std::vector<PathNews>> probed;
  std::vector<Route> working;
  for (const EngineAt& at : cluster.engines(asked.from)) {
    if (!at.leader) continue;
    at.poller->call([&] {
      if (asked.begin) at.engine->path_chooser().ask(asked.to);
      const bcube::PathProber::News* news = at.engine->path_chooser().asked(asked.to);
      if (news != nullptr) probed = news->paths;
      working = at.engine->paths_to(asked.to);
    });
  }
  Json paths = Json::array();
  for (const PathNews& path : probed.value_or(std::vector<PathNews>())) {
    const bool answers = path.state == PathNews::State::answers;
    paths.push_back(
        path_json(path.route, answers ? "answers" : "silent", answers ? &path : nullptr));
  }
  for (const Route& route : bcube::parallel_paths(topology.space(), asked.from, asked.to)) {
    if (route.size() <= bcube::most_hops(topology.space()) &&
        std::ranges::find(working, route) == working.end()) {
      paths.push_back(path_json(route, "down", nullptr));
    }
  }
  return {{"ready", probed.has_value()}, {"paths", paths}};
}

}  // namespace gradcube::dataplane
