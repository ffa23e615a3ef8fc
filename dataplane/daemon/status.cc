#include "dataplane/daemon/status.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/base/topology.h"
#include "control/status/merged_status.h"
#include "dataplane/daemon/cabling.h"
#include "dataplane/daemon/resident_memory.h"
#include "dataplane/engine/flow_users.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

namespace {

using Json = nlohmann::ordered_json;

struct FlowFacts {
  std::uint32_t job;
  bcube::ServerId server;
  FlowName name;
  protocol::Stage stage;
  bcube::ServerId peer;
  std::uint64_t sent;
  unsigned in_flight;
  std::uint64_t credit;
  double srtt_us;
  protocol::SendCounters counters;
};

// What engines have, together.
struct EngineFacts {
  EngineCounters counters;
  std::size_t flow_count = 0;
  std::vector<FlowFacts> flows;  // the first kMostFlows
};

FlowFacts facts_of(const Flow& flow, protocol::JobId job, bcube::ServerId server) {
  return {job,
          server,
          name_of(flow),
          flow.stage,
          flow.peer,
          flow.send.next(),
          flow.send.in_flight(),
          flow.send.limit() - flow.send.next(),
          static_cast<double>(flow.send.rtt().smoothed()) / 1000.0,
          flow.send.counters()};
}

// With the flows of these jobs, or of all if none is named.
EngineFacts read_engines(const LocalCluster& cluster, const std::vector<std::string>& jobs) {
  const std::map<protocol::JobId, std::string> names = cluster.nodes().job_names();
  const auto is_wanted = [&](protocol::JobId job) {
    const auto name = names.find(job);
    return jobs.empty() || (name != names.end() && std::ranges::count(jobs, name->second) > 0);
  };
  EngineFacts facts;
  on_each(cluster.engines(), [&](const EngineAt& at) {
    add_counters(facts.counters, at.engine->counters());
    for (EngineJob* job : at.engine->jobs()) {
      if (!is_wanted(job->id())) continue;
      job->for_each_flow([&](const Flow& flow) {
        if (++facts.flow_count > kMostFlows) return;
        facts.flows.push_back(facts_of(flow, job->id(), at.engine->settings().server));
      });
    }
  });
  return facts;
}

// With what the control thread drops of the frames that engines hand to it.
Json all_counters_json(const LocalCluster& cluster, EngineCounters sum) {
  add_counters<FrameDrops>(sum, cluster.nodes().dropped_messages());
  return counters_json(sum);
}

Json flows_json(const LocalCluster& cluster, const std::vector<FlowFacts>& facts) {
  const bcube::AddressSpace& space = cluster.topology().space();
  const std::map<protocol::JobId, std::string> names = cluster.nodes().job_names();
  Json flows = Json::array();
  for (const FlowFacts& flow : facts) {
    Json one = {{"job", names.contains(flow.job) ? names.at(flow.job) : ""},
                {"server", control::address_json(space, flow.server)},
                {"lane", flow.name.lane},
                {"thread", flow.name.thread},
                {"stage", flow.stage == protocol::Stage::aggregation ? "aggregation" : "broadcast"},
                {"peer", control::address_json(space, flow.peer)},
                {"sent", flow.sent},
                {"in_flight", flow.in_flight},
                {"srtt_us", flow.srtt_us},
                {"credit", flow.credit}};
    one.update(counters_json<FlowCounters>(flow.counters));
    flows.push_back(std::move(one));
  }
  return flows;
}

// Of a port: to whom its links are down, as the server has found out.
std::vector<bcube::ServerId> neighbours_down(const StatusSources& sources, bcube::ServerId server,
                                             unsigned port) {
  const bcube::AddressSpace& space = sources.cluster.topology().space();
  const ServerLinks& links = sources.cluster.nodes().at(server).engines().links();
  std::vector<bcube::ServerId> down;
  const unsigned level = space.level_of_port(port);
  const unsigned own = space.digit(server, level);
  for (unsigned digit = 0; digit < space.hop_digits(level); ++digit) {
    const bcube::Hop link{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
    if (!space.joins(level, own, digit) || space.port_of(server, level, digit) != port ||
        links.up(link)) {
      continue;
    }
    const bcube::ServerId neighbour = space.with_digit(server, level, digit);
    // It may have several ports, of which one is enough.
    const bool is_known = std::ranges::find(down, neighbour) != down.end();
    if (!space.is_absent(neighbour) && !is_known) down.push_back(neighbour);
  }
  return down;
}

Json rate_json(std::uint64_t rate) { return rate == 0 ? Json(nullptr) : Json(rate); }

Json servers_json(const StatusSources& sources) {
  const bcube::AddressSpace& space = sources.cluster.topology().space();
  const WrongPorts wrong = wrong_ports(space, sources.cluster.engines());
  Json servers = Json::array();
  for (const bcube::ServerId server : sources.cluster.nodes().servers()) {
    const std::vector<Port*> of_server = sources.cluster.fabric().ports(server);
    Json ports = Json::array();
    for (unsigned number = 0; number < of_server.size(); ++number) {
      const unsigned level = space.level_of_port(number);
      Json port = {{"level", level},
                   {"port", number},
                   {"rate_bps", rate_json(sources.settings.rates.of_port(server, level))}};
      port.update(counters_json(of_server[number]->counts()));
      of_server[number]->add_to_status(port);
      port["down"] = control::addresses_json(space, neighbours_down(sources, server, number));
      const auto found = wrong.find({server, number});
      const WrongPort is = found == wrong.end() ? WrongPort{} : found->second;
      port["short_only"] = control::addresses_json(space, is.short_only);
      port["wrong"] = is.text.empty() ? Json(nullptr) : Json(is.text);
      if (const std::string problem = of_server[number]->problem(); !problem.empty()) {
        port["wrong"] = problem;
      }
      ports.push_back(std::move(port));
    }
    servers.push_back({{"address", control::address_json(space, server)},
                       {"version", GRADCUBE_VERSION},
                       {"socket", sources.sockets.server_socket(space.suffix(server)).string()},
                       {"trainers", sources.cluster.nodes().at(server).trainers()},
                       {"ports", std::move(ports)}});
    servers.back().update(sources.keys);
  }
  return servers;
}

// The shared memory that trainers use: by user, what the daemon has confirmed.
Json users_json(const MemoryQuota& quota) {
  Json users = Json::array();
  for (const auto& [user, bytes] : quota.users()) {
    users.push_back({{"uid", user}, {"bytes", bytes}});
  }
  return users;
}

// So that jobs of one name can be told apart.
std::string owner_text(const control::JobOwner& owner) {
  if (owner == control::kOwnUser) return "own";
  if (owner.high != 0) return fmt::format("secret {:08x}", owner.low & 0xffffffff);
  return fmt::format("user {}", owner.low - 1);
}

Json jobs_json(const StatusSources& sources) {
  const bcube::AddressSpace& space = sources.cluster.topology().space();
  Json jobs = Json::array();
  for (const JobFacts& job : sources.cluster.nodes().jobs(sources.now)) {
    Json trainers = Json::array();
    for (const JobFacts::Trainer& trainer : job.trainers) {
      Json one = {{"address", control::address_json(space, trainer.server)},
                  {"local", trainer.local},
                  {"pid", trainer.pid},
                  {"uid", trainer.uid},
                  {"heap_bytes", trainer.heap_bytes},
                  {"submitted", trainer.submitted()},
                  {"completed", trainer.completed()},
                  {"submitted_by_lane", trainer.counts.published},
                  {"completed_by_lane", trainer.counts.completed}};
      one.update(counters_json(trainer.messages));
      trainers.push_back(std::move(one));
    }
    Json lanes = Json::array();
    for (const control::LaneOptions& lane : job.options.lanes) {
      lanes.push_back({{"algorithm", lane.algorithm}, {"priority", lane.priority}});
    }
    jobs.push_back({{"name", job.name},
                    {"owner", owner_text(job.owner)},
                    {"id", job.id},
                    {"epoch", job.epoch},
                    {"state", state_name(job.state)},
                    {"why", job.why},
                    {"lanes", std::move(lanes)},
                    {"weight", job.options.weight},
                    {"reproducible", job.options.reproducible},
                    {"trainers_per_server", job.options.trainers},
                    {"members", control::addresses_json(space, job.options.members)},
                    {"window", job.window},
                    {"packets_reserved_bytes", job.reserved_bytes},
                    {"trainers", std::move(trainers)},
                    {"collectives", job.collectives},
                    {"waiting_for", control::addresses_json(space, job.waiting_for)},
                    {"waiting_ms", job.waiting_ms}});
    if (job.key != 0) jobs.back()["key"] = control::key_id_text(job.key);
  }
  return jobs;
}

// Those that a server aggregates for jobs without trainers there.
Json hubs_json(const StatusSources& sources) {
  const bcube::AddressSpace& space = sources.cluster.topology().space();
  Json hubs = Json::array();
  for (const HubFacts& hub : sources.cluster.nodes().hubs()) {
    hubs.push_back({{"job", hub.call.job},
                    {"id", hub.call.hub.job},
                    {"number", hub.call.hub.number},
                    {"address", control::address_json(space, hub.aggregator)},
                    {"state", progress_name(hub.state.progress)},
                    {"why", hub.state.why},
                    {"members", control::addresses_json(space, hub.call.members)},
                    {"trainers_per_server", hub.call.trainers},
                    {"uid", hub.call.user},
                    {"keys", hub.keys},
                    {"weights_bytes", hub.weights_bytes},
                    {"memory_bytes", hub.memory_bytes},
                    {"packets_reserved_bytes", hub.reserved_bytes}});
  }
  return hubs;
}

Json steps_json(const ControlLoop::Steps& steps) {
  const std::chrono::duration<double, std::milli> longest = steps.longest;
  return {{"steps", steps.steps},
          {"long_steps", steps.long_ones},
          {"longest_step_ms", longest.count()},
          {"put_off", steps.hurries}};
}

}  // namespace

Json status_json(const StatusSources& sources) {
  const control::ClusterSettings& settings = sources.settings;
  const EngineFacts engines = read_engines(sources.cluster, {});
  Json lcores = Json::array();
  Json stalls = Json::array();
  for (std::size_t i = 0; i < sources.cluster.pollers().size(); ++i) {
    lcores.push_back(settings.lcores[i]);
    stalls.push_back(sources.cluster.pollers()[i]->stalls());
  }
  const EalFacts eal = sources.eal.facts();
  Json status;
  status["version"] = GRADCUBE_VERSION;
  status["pid"] = getpid();
  status["uptime_seconds"] = sources.uptime_seconds;
  status.update(control::status::settings_json(settings));
  status["algorithm"] = sources.cluster.default_algorithm();
  status["fabric"] = sources.cluster.fabric_name();
  if (const auto authentication = sources.cluster.authentication()) {
    status["authentication"] = *authentication;
  }
  status["segment_bytes"] = sources.cluster.parameters().segment_bytes;
  status["window"] = sources.cluster.parameters().window;
  status["lcores"] = std::move(lcores);
  status["stalls"] = std::move(stalls);
  status["control"] = steps_json(sources.steps);
  status["instruction_set"] =
      aggregation::instruction_set_name(sources.cluster.kernels().instruction_set);
  status["huge_pages"] = eal.huge_pages;
  status.update(sources.cluster.switches_report());
  status["memory"] = {{"daemon_bytes", own_resident_bytes()},
                      {"pool_bytes", sources.cluster.pool_bytes()},
                      {"packets_reserved_bytes", sources.cluster.reserved_bytes()},
                      {"packets_reservable_bytes", sources.cluster.reservable_bytes()},
                      {"trainer_bytes", sources.cluster.nodes().trainer_bytes()},
                      {"trainer_quota_bytes", sources.quota.limit()},
                      {"users", users_json(sources.quota)}};
  status["user_trainers"] = sources.trainers_per_user;
  status["servers"] = servers_json(sources);
  status["jobs"] = jobs_json(sources);
  status["hubs"] = hubs_json(sources);
  status["flow_count"] = engines.flow_count;
  status["flows"] =
      engines.flow_count > kMostFlows ? Json::array() : flows_json(sources.cluster, engines.flows);
  status["counters"] = all_counters_json(sources.cluster, engines.counters);
  return status;
}

Json flows_json(const LocalCluster& cluster, const std::vector<std::string>& jobs) {
  const EngineFacts engines = read_engines(cluster, jobs);
  return {{"flow_count", engines.flow_count}, {"flows", flows_json(cluster, engines.flows)}};
}

}  // namespace gradcube::dataplane
