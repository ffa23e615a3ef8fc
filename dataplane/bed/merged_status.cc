#include "dataplane/bed/merged_status.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "dataplane/bed/merged_jobs.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

// Adds numbers, and objects of numbers, key by key.
void add_numbers(Json& sum, const Json& more) {
  for (const auto& [key, value] : more.items()) {
    if (value.is_object()) {
      add_numbers(sum[key], value);
    } else if (value.is_number()) {
      sum[key] = sum.contains(key) ? sum[key].get<std::uint64_t>() + value.get<std::uint64_t>()
                                   : value.get<std::uint64_t>();
    }
  }
}

Json sum_of(const std::vector<ServerReport>& servers, const char* key) {
  Json sum = Json::object();
  for (const ServerReport& one : servers) {
    if (one.status.is_object()) add_numbers(sum, one.status.value(key, Json::object()));
  }
  return sum;
}

Json control_of(const std::vector<ServerReport>& servers) {
  Json control = sum_of(servers, "control");
  double longest = 0;
  for (const ServerReport& one : servers) {
    if (!one.status.is_object()) continue;
    longest = std::max(longest,
                       one.status.value("control", Json::object()).value("longest_step_ms", 0.0));
  }
  control["longest_step_ms"] = longest;
  return control;
}

Json joined(const std::vector<ServerReport>& servers, const char* key) {
  Json all = Json::array();
  for (const ServerReport& one : servers) {
    if (!one.status.is_object()) continue;
    for (const Json& item : one.status.value(key, Json::array())) all.push_back(item);
  }
  return all;
}

// What the daemons' trainers use, by user.
Json users_of(const std::vector<ServerReport>& servers) {
  std::map<Json, std::uint64_t> bytes;
  for (const ServerReport& one : servers) {
    if (!one.status.is_object()) continue;
    const Json memory = one.status.value("memory", Json::object());
    for (const Json& user : memory.value("users", Json::array())) {
      bytes[user.value("uid", Json())] += user.value("bytes", std::uint64_t{0});
    }
  }
  Json users = Json::array();
  for (const auto& [user, used] : bytes) users.push_back({{"uid", user}, {"bytes", used}});
  return users;
}

// The cores of all daemons, ascending, and the stalls of the pollers on each.
std::pair<Json, Json> cores_of(const std::vector<ServerReport>& servers) {
  std::map<Json, std::uint64_t> stalls;
  for (const ServerReport& one : servers) {
    if (!one.status.is_object()) continue;
    const Json cores = one.status.value("lcores", Json::array());
    const Json counts = one.status.value("stalls", Json::array());
    for (std::size_t i = 0; i < cores.size() && i < counts.size(); ++i) {
      stalls[cores[i]] += counts[i].get<std::uint64_t>();
    }
  }
  std::pair<Json, Json> result{Json::array(), Json::array()};
  for (const auto& [core, count] : stalls) {
    result.first.push_back(core);
    result.second.push_back(count);
  }
  return result;
}

Json servers_json(const bcube::AddressSpace& space, const std::vector<ServerReport>& servers) {
  Json all = Json::array();
  for (const ServerReport& one : servers) {
    const Json own = one.status.is_object() ? one.status.value("servers", Json::array()) : Json();
    Json entry = {{"address", control::address_json(space, one.server)}};
    if (own.size() == 1) entry.update(own[0]);
    entry["socket"] = one.socket;
    entry["pid"] = one.pid;
    if (!one.status.is_object()) {
      entry["why"] = one.why;
      entry["ended"] = one.ended;
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

Json merged_status(Json head, const control::ClusterSettings& settings, const Json& network,
                   const std::vector<ServerReport>& servers) {
  const auto first = std::find_if(servers.begin(), servers.end(),
                                  [](const ServerReport& one) { return one.status.is_object(); });
  // The same for all daemons.
  const auto common = [&](const char* key) {
    return first == servers.end() ? Json() : first->status.value(key, Json());
  };
  Json status = std::move(head);
  status["aggregators"] = control::aggregators_json(settings.topology, settings.aggregators);
  status["fabric"] = control::fabric_name(settings.fabric);
  status["rate_bps"] = control::to_json(settings.rates);
  status["mtu"] = settings.mtu;
  status["segment_bytes"] = common("segment_bytes");
  status["window"] = common("window");
  status["delay_ns"] = settings.delay_ns;
  status["queue_bytes"] = settings.queue_bytes;
  std::tie(status["lcores"], status["stalls"]) = cores_of(servers);
  status["control"] = control_of(servers);
  status["idle"] = control::idle_name(settings.idle);
  status["instruction_set"] = common("instruction_set");
  status["huge_pages"] = common("huge_pages");
  status.update(network);
  status["memory"] = sum_of(servers, "memory");
  status["memory"]["users"] = users_of(servers);
  status["servers"] = servers_json(settings.topology.space(), servers);
  status["jobs"] = merged_jobs(joined(servers, "jobs"));
  status["hubs"] = joined(servers, "hubs");
  std::size_t flows = 0;
  for (const ServerReport& one : servers) {
    if (one.status.is_object()) flows += one.status.value("flow_count", std::size_t{0});
  }
  status["flows"] = joined(servers, "flows");
  // All or none, as of one daemon.
  if (status["flows"].size() != flows) status["flows"] = Json::array();
  status["flow_count"] = flows;
  status["counters"] = sum_of(servers, "counters");
  return status;
}

}  // namespace gradcube::dataplane
