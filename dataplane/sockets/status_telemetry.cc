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

void require_one(const Json& chosen, std::string_view which, const char* what) {
  if (which.empty() || !chosen.empty()) return;
  throw control::UsageError(fmt::format("there is no {} {}: ask without a parameter for all", what,
                                        control::quoted(which)));
}

Json job_view(const Json& job) {
  Json view = Json::object();
  for (const auto& [key, value] : job.items()) {
    if (!value.is_structured()) view[key] = value;
  }
  view["servers"] = job["members"].size();
  view["trainers"] = job["trainers"].size();
  view["waiting_for"] = names_of(job["waiting_for"]);
  return view;
}

}  // namespace

Json status_view(const Json& status) {
  Json view = Json::object();
  for (const auto& [key, value] : status.items()) {
    if (!value.is_structured()) view[key] = value;
  }
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
      view["down"] = names_of(port["down"]);
    }
  }
  require_one(links, which, "link");
  return links;
}

Json jobs_view(const Json& status, std::string_view which) {
  Json jobs = Json::object();
  for (const Json& job : status["jobs"]) {
    std::string name = job["name"].get<std::string>();
    if (!which.empty() && which != name) continue;
    if (jobs.contains(name)) name += fmt::format("#{}", job["id"].get<std::uint64_t>());
    jobs[name] = job_view(job);
  }
  require_one(jobs, which, "job");
  return jobs;
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
