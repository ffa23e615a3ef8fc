#include "dataplane/sockets/status_telemetry.h"

#include <fmt/format.h>
#include <string>
#include <utility>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

// [2,1] is "2-1", as in the names of sockets.
std::string name_of(const Json& address) {
  std::string name;
  for (const Json& digit : address) {
    name += fmt::format("{}{}", name.empty() ? "" : "-", digit.get<unsigned>());
  }
  return name;
}

Json names_of(const Json& addresses) {
  Json names = Json::array();
  for (const Json& address : addresses) names.push_back(name_of(address));
  return names;
}

Json at_least_one(Json chosen, std::string_view which, const char* what) {
  if (which.empty() || !chosen.empty()) return chosen;
  throw control::UsageError(fmt::format("there is no {} {}: ask without a parameter for all", what,
                                        control::quoted(which)));
}

// Its numbers and words.
Json plain_view(const Json& object) {
  Json view = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_structured()) view[key] = value;
  }
  return view;
}

// Views of these, or of those of one name; "#" and the id tell apart what has the same.
template <typename View>
Json by_name(const Json& list, const char* key, std::string_view which, const View& view_of) {
  Json views = Json::object();
  for (const Json& one : list) {
    std::string name = one[key].get<std::string>();
    if (!which.empty() && which != name) continue;
    if (views.contains(name)) name += fmt::format("#{}", one["id"].get<std::uint64_t>());
    views[name] = view_of(one);
  }
  return views;
}

Json hub_view(const Json& hub) {
  Json view = plain_view(hub);
  view["aggregator"] = name_of(hub["address"]);
  view["servers"] = hub["members"].size();
  return view;
}

Json job_view(const Json& job) {
  Json view = plain_view(job);
  view["servers"] = job["members"].size();
  view["trainers"] = job["trainers"].size();
  view["waiting_for"] = names_of(job["waiting_for"]);
  return view;
}

}  // namespace

Json status_view(const Json& status) {
  Json view = plain_view(status);
  view["topology"] = status["topology"];
  view["rate_bps"] = status["rate_bps"];
  for (const auto& [key, value] : status["memory"].items()) {
    if (value.is_number()) view[key] = value;
  }
  std::size_t links = 0, down = 0, wrong = 0, trainers = 0;
  for (const Json& server : status["servers"]) {
    trainers += server["trainers"].get<std::size_t>();
    for (const Json& port : server["ports"]) {
      ++links;
      down += port["down"].empty() ? 0 : 1;
      wrong += port["wrong"].is_null() ? 0 : 1;
    }
  }
  view["servers"] = status["servers"].size();
  view["links"] = links;
  view["links_down"] = down;
  view["links_wrong"] = wrong;
  view["jobs"] = status["jobs"].size();
  view["trainers"] = trainers;
  view["hubs"] = status["hubs"].size();
  return view;
}

Json links_view(const Json& status, std::string_view which) {
  Json links = Json::object();
  for (const Json& server : status["servers"]) {
    const std::string name = name_of(server["address"]);
    for (const Json& port : server["ports"]) {
      const std::string link = fmt::format("{}:{}", name, port["port"].get<unsigned>());
      if (!which.empty() && which != name && which != link) continue;
      Json& view = links[link] = port;
      for (const char* neighbours : {"down", "short_only"}) {
        view[neighbours] = names_of(port[neighbours]);
      }
    }
  }
  return at_least_one(std::move(links), which, "link");
}

Json jobs_view(const Json& status, std::string_view which) {
  return at_least_one(by_name(status["jobs"], "name", which, job_view), which, "job");
}

Json hubs_view(const Json& status, std::string_view which) {
  return at_least_one(by_name(status["hubs"], "job", which, hub_view), which, "hub of job");
}

StatusTelemetry::StatusTelemetry(TelemetryServer& server, std::function<Json()> status,
                                 std::function<SteadyClock::time_point()> now)
    : status_(std::move(status)), now_(std::move(now)) {
  server.add("/gradcube/status", "the daemon and its settings; no parameter",
             [this](std::string_view) { return status_view(recent()); });
  server.add("/gradcube/links", "the ports of all servers, of one (2-1), or one port (2-1:0)",
             [this](std::string_view which) { return links_view(recent(), which); });
  server.add("/gradcube/jobs", "all jobs, or those of one name",
             [this](std::string_view which) { return jobs_view(recent(), which); });
  server.add("/gradcube/hubs", "hubs that servers aggregate for jobs of others, or one job's",
             [this](std::string_view which) { return hubs_view(recent(), which); });
  server.add("/gradcube/counters", "the sums of all engines' counters; no parameter",
             [this](std::string_view) { return recent()["counters"]; });
}

const Json& StatusTelemetry::recent() {
  const SteadyClock::time_point now = now_();
  if (recent_.is_null() || now - taken_ >= kFreshFor) {
    recent_ = status_();
    taken_ = now;
  }
  return recent_;
}

}  // namespace gradcube::dataplane
