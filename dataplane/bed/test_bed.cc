#include "dataplane/bed/test_bed.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "control/base/cores.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/settings/ask_daemons.h"
#include "control/settings/cluster_key.h"
#include "control/status/merged_status.h"
#include "control/status/status_for.h"
#include "dataplane/bed/flows_request.h"
#include "dataplane/bed/memif_network.h"
#include "dataplane/bed/server_settings.h"
#include "dataplane/bed/udp_network.h"
#include "dataplane/bed/veth_network.h"
#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

using bcube::ServerId;
using control::SetupError;
using Json = nlohmann::ordered_json;

namespace {

constexpr auto kNamespacePatience = std::chrono::seconds(10);

control::ClusterSettings with_cores(control::ClusterSettings settings) {
  if (settings.lcores.empty()) settings.lcores = control::allowed_cores();
  if (settings.server_lcores > settings.lcores.size()) {
    throw control::UsageError(
        fmt::format("server-lcores: each server is to run on {} lcores, and there are {}: expected "
                    "at most as many",
                    settings.server_lcores, settings.lcores.size()));
  }
  return settings;
}

// What `gradcube keygen` would have made, where the settings name no key.
control::OwnKeyFile own_key(const control::ClusterSettings& settings,
                            const control::RunDirectory& directory) {
  if (settings.authentication == control::Authentication::none || !settings.key_file.empty()) {
    return {};
  }
  return {directory.key_file(), control::key_text(control::draw_secret())};
}

control::ClusterSettings with_key(control::ClusterSettings settings,
                                  const control::OwnKeyFile& key) {
  if (!key.path().empty()) settings.key_file = key.path().string();
  return settings;
}

std::unique_ptr<BedNetwork> network_of(control::ClusterSettings& settings,
                                       const control::RunDirectory& directory,
                                       const std::filesystem::path& daemon) {
  if (settings.fabric == control::FabricKind::veth) return std::make_unique<VethNetwork>(settings);
  if (settings.fabric == control::FabricKind::udp) return std::make_unique<UdpNetwork>(settings);
  return std::make_unique<MemifNetwork>(settings, directory, daemon);
}

}  // namespace

TestBed::TestBed(control::ClusterSettings settings, control::RunDirectory directory,
                 const control::DaemonLock& lock, const Programs& programs, std::string version)
    : directory_(std::move(directory)),
      key_(own_key(settings, directory_)),
      settings_(with_key(with_cores(std::move(settings)), key_)),
      lock_(lock),
      version_(std::move(version)),
      users_(settings_.allowed_users, settings_.allowed_groups),
      network_(network_of(settings_, directory_, programs.daemon)),
      present_(settings_.topology.space().server_list()) {
  try {
    start(programs.server);
  } catch (...) {
    servers_.clear();
    network_.reset();
    remove_sockets();
    throw;
  }
}

void TestBed::start(const std::filesystem::path& server_program) {
  network_->prepare();
  start_servers(server_program);
  network_->join(servers_);
  for (DaemonProcess& server : servers_) server.execute();
  await_reports(servers_, names(), directory_);
  control_ = std::make_unique<ControlServer>(loop_, directory_.control_socket(), users_);
  add_commands();
  stop_causes_ = std::make_unique<StopCauses>(loop_, *control_, directory_, lock_);
  watch_daemons(loop_, servers_, names());
  network_->watch(loop_);
  loop_.on_tick([this] { tick(); });
}

TestBed::~TestBed() {
  end_daemons();
  control_.reset();
  remove_sockets();
}

// Those of daemons that did not end in good order.
void TestBed::remove_sockets() {
  try {
    directory_.remove_stale_sockets(lock_);
  } catch (const SetupError& error) {
    log::warn("{}", error.what());
  }
}

void TestBed::start_servers(const std::filesystem::path& program) {
  const bcube::AddressSpace& space = settings_.topology.space();
  for (const ServerId server : present_) {
    const control::ClusterSettings own = server_settings(settings_, server, settings_.lcores);
    servers_.emplace_back(
        server_program(program.string(), own, server, network_->port_arguments(), directory_),
        directory_.of_server(space.suffix(server)), network_->network_of_servers());
  }
  const SteadyClock::time_point deadline = SteadyClock::now() + kNamespacePatience;
  const std::vector<std::string> all = names();
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    for_daemon(all[i], [&] { servers_[i].await_namespace(deadline); });
  }
}

void TestBed::add_commands() {
  for (const char* command : {"status", "status-of-all"}) {
    control_->add(command, [this](const nlohmann::json&) -> Json {
      return {{"status", status()}};
    });
  }
  control_->add_for_tenants("status", [this](const nlohmann::json&, uid_t user) {
    return Json{{"status", control::status::status_for(status(), user)}};
  });
  control_->add("flows", [this](const nlohmann::json& request) {
    return flows_of(control_sockets(servers_), request);
  });
  control_->add("rekey", [this](const nlohmann::json& request) { return rekey(request); });
  control_->add("impair", [this](const nlohmann::json& request) { return impair(request); });
  control_->add("paths", [this](const nlohmann::json& request) { return paths(request); });
}

void TestBed::end_daemons() {
  dataplane::end_daemons(servers_, names());
  network_->end();
}

void TestBed::tick() {
  const SteadyClock::time_point now = SteadyClock::now();
  control_->tick(now);
  stop_causes_->look(now);
  if (stop_causes_->any() && control_->all_answered()) loop_.stop();
}

std::vector<std::string> TestBed::names() const {
  const bcube::AddressSpace& space = settings_.topology.space();
  std::vector<std::string> names;
  for (const ServerId server : present_) names.push_back("server " + space.text(server));
  return names;
}

Json TestBed::status() {
  const bcube::AddressSpace& space = settings_.topology.space();
  const std::vector<control::DaemonAnswer> answers = control::ask_daemons(
      control_sockets(servers_), {{"command", "status"}}, control::kAnswerPatience);
  std::vector<control::status::ServerReport> reports;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const std::string end = servers_[i].end_text();
    const control::DaemonAnswer& answer = answers[i];
    reports.push_back(
        {.server = present_[i],
         .socket = directory_.server_socket(space.suffix(present_[i])).string(),
         .pid = servers_[i].process().pid(),
         .status = answer.answer.is_null() ? Json() : answer.answer.value("status", Json()),
         .why = end.empty() ? answer.why : end,
         .ended = !end.empty()});
  }
  const std::chrono::duration<double> uptime = SteadyClock::now() - started_;
  const control::Topology rated = settings_.rated_topology();
  const auto placement = control::place_on_trainers_servers(rated, settings_.aggregators);
  Json own = {{"version", version_},
              {"pid", getpid()},
              {"uptime_seconds", uptime.count()},
              {"authentication", control::authentication_name(settings_.authentication)},
              {"algorithm", control::default_algorithm_of_jobs(rated, placement)}};
  own.update(network_->report());
  return control::status::merged_status(own, settings_, reports);
}

// The daemon of the server where the paths begin knows.
Json TestBed::paths(const nlohmann::json& request) {
  if (!request.contains("from") || !request["from"].is_string()) {
    throw control::UsageError("paths: \"from\" must be a server's address: \"0,0\"");
  }
  const ServerId from =
      control::parse_server(settings_.topology, request["from"].get<std::string>(), "paths:");
  const auto place = static_cast<std::size_t>(
      std::lower_bound(present_.begin(), present_.end(), from) - present_.begin());
  control::DaemonAnswer answer =
      control::ask_daemons({servers_[place].directory().control_socket()}, request,
                           control::kAnswerPatience)
          .front();
  if (answer.usage) throw control::UsageError(answer.why);
  if (answer.answer.is_null()) {
    throw SetupError(fmt::format("{}: {}", names()[place], answer.why));
  }
  answer.answer.erase("ok");
  return std::move(answer.answer);
}

// All daemons, or an error that says which could not. The first one's answer.
Json TestBed::rekey(const nlohmann::json& request) {
  const std::vector<control::DaemonAnswer> answers =
      control::ask_daemons(control_sockets(servers_), request, control::kAnswerPatience);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].usage) throw control::UsageError(answers[i].why);
    if (!answers[i].answer.is_null()) continue;
    throw SetupError(
        fmt::format("{}: {}. Other servers may have begun: put that right, and type it again",
                    names()[i], answers[i].why));
  }
  Json answer = answers.front().answer;
  answer.erase("ok");
  return answer;
}

Json TestBed::impair(const nlohmann::json& request) {
  Json answer = {{"changed", network_->impair(request)}};
  Json report = network_->report();
  for (const char* key : {"impairments", "impaired_links"}) answer[key] = std::move(report[key]);
  return answer;
}

}  // namespace gradcube::dataplane
