#include "control/status/merged_status.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "control/status/form.h"
#include "control/status/merged_jobs.h"

namespace gradcube::control::status {

namespace {

// What the daemons' trainers use, by user.
Json users_of(const Json& listed) {
  Json users = Json::array();
  for (const Reports& user : grouped(listed, {"uid"})) {
    users.push_back(merged(form_of_status()["memory"]["users"][0], user));
  }
  return users;
}

// The cores of all daemons, ascending, and the stalls of the pollers on each.
std::pair<Json, Json> cores_of(const Json& cores, const Json& counts) {
  std::map<Json, std::uint64_t> stalls;
  for (std::size_t i = 0; i < cores.size() && i < counts.size(); ++i) {
    stalls[cores[i]] += count_of(counts[i]);
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
    Json entry = {{"address", address_json(space, one.server)}};
    if (own.size() == 1) entry.update(own[0]);
    entry["socket"] = one.socket;
    entry["pid"] = one.pid;
    // Of a daemon that answers none of them, whatever it says.
    for (const char* field : {"why", "ended"}) entry.erase(field);
    if (!one.status.is_object()) {
      entry["why"] = one.why;
      entry["ended"] = one.ended;
    } else if (const auto pid = count_of(one.status.value("pid", Json())); pid != 0) {
      entry["pid"] = pid;  // of one that was started by hand where another had ended
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

Json merged_status(Json own, const ClusterSettings& settings,
                   const std::vector<ServerReport>& servers) {
  Reports told;
  for (const ServerReport& one : servers) told.push_back(&one.status);
  Json status = merged(form_of_status(), told);
  // As many of each in every daemon's.
  std::tie(status["lcores"], status["stalls"]) = cores_of(status["lcores"], status["stalls"]);
  status["memory"]["users"] = users_of(status["memory"]["users"]);
  status["servers"] = servers_json(settings.topology.space(), servers);
  status["jobs"] = merged_jobs(status["jobs"]);
  // All or none, as of one daemon.
  if (status["flows"].size() != count_of(status["flow_count"])) status["flows"] = Json::array();
  status.update(settings_json(settings));
  status.update(own);
  return status;
}

Json settings_json(const ClusterSettings& settings) {
  return {{"topology", topology_json(settings.topology)},
          {"aggregators", addresses_json(settings.topology.space(), settings.aggregators)},
          {"fabric", fabric_name(settings.fabric)},
          {"rate_bps", to_json(settings.link_rates())},
          {"own_ports", own_ports_json(settings.rates.own_ports())},
          {"server_lcores", settings.server_lcores},
          {"user_jobs", settings.jobs_per_user()},
          {"allowed", {{"users", settings.allowed_users}, {"groups", settings.allowed_groups}}},
          {"mtu", settings.mtu},
          {"delay_ns", settings.delay_ns},
          {"queue_bytes", settings.queue_bytes},
          {"idle", idle_name(settings.idle)}};
}

}  // namespace gradcube::control::status
