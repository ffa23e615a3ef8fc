#include "dataplane/daemon/process/daemon.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <random>
#include <rte_launch.h>
#include <utility>

#include "control/base/errors.h"
#include "control/base/host_memory.h"
#include "control/settings/cluster_key.h"
#include "control/status/status_for.h"
#include "dataplane/bed/flows_request.h"
#include "dataplane/daemon/packet_sizing.h"
#include "dataplane/daemon/process/paths_request.h"
#include "dataplane/daemon/status.h"
#include "dataplane/engine/memory/guarded_memory.h"
#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

namespace {

// Of what job control asks for in one go. Then a step may follow that was about to begin.
constexpr auto kPart = std::chrono::milliseconds(10);
constexpr auto kLookEvery = std::chrono::milliseconds(20);
constexpr auto kLookAtWaitsEvery = std::chrono::milliseconds(100);
constexpr auto kLookAtPortsEvery = std::chrono::seconds(1);
// How long a daemon that ends waits until the others know that its trainers are gone.
constexpr auto kFarewell = std::chrono::milliseconds(500);

// How many lcores are of use to the servers that are here.
std::size_t useful_lcores(const control::ClusterSettings& settings,
                          const std::optional<LoneServer>& lone) {
  if (lone.has_value()) return lone->driver->useful_lcores(settings);
  return std::size_t{settings.topology.servers()} *
         std::max(settings.topology.ports(), settings.server_lcores);
}

control::ClusterSettings with_lcores(control::ClusterSettings settings,
                                     const std::optional<LoneServer>& lone) {
  const std::vector<unsigned> usable = usable_cores();
  if (settings.lcores.empty()) {
    const std::size_t useful = std::min(useful_lcores(settings, lone), usable.size());
    settings.lcores.assign(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(useful));
  }
  for (const unsigned core : settings.lcores) {
    if (std::ranges::find(usable, core) == usable.end()) {
      throw control::UsageError(
          fmt::format("--lcores: this process may not run on core {}: it has {} to {}", core,
                      usable.front(), usable.back()));
    }
  }
  return settings;
}

EalOptions eal_options(const control::ClusterSettings& settings,
                       const std::optional<LoneServer>& lone) {
  const Payloads payloads = lone.has_value() ? Payloads::copied : Payloads::referenced;
  const Steering steering = lone.has_value() ? lone->driver->steering : Steering::certain;
  const auto lcores = static_cast<unsigned>(settings.lcores.size());
  EalOptions options;
  options.cores = settings.lcores;
  options.memory_megabytes = packet_megabytes(settings, lcores, payloads, steering);
  options.log = stderr;
  if (lone.has_value() && lone->driver->needs != nullptr) {
    const PortNeeds needs = lone->driver->needs(settings, lone->ports, lcores);
    options.memory_megabytes += needs.megabytes;
    options.pci_devices = needs.pci_devices;
    if (needs.huge_pages) options.huge_pages = HugePages::always;
  }
  return options;
}

// That authenticates the frames that leave this process; nothing if none do, or none are to be.
std::optional<control::Secret> key_of(const control::ClusterSettings& settings,
                                      const std::optional<LoneServer>& lone) {
  if (!lone.has_value()) return std::nullopt;
  if (settings.authentication == control::Authentication::none) {
    if (!settings.key_file.empty()) {
      throw control::UsageError(
          "authentication = \"none\" and a key-file contradict each other: expected one of them");
    }
    log::warn(
        "authentication = \"none\": whoever can send frames to this daemon's ports can change the "
        "results of its jobs and end them");
    return std::nullopt;
  }
  if (settings.key_file.empty()) {
    throw control::UsageError(
        "the frames of this daemon leave its process, and it has no key to authenticate them: "
        "expected key-file in [security] of the cluster file, with the path of a file that "
        "`gradcube keygen` has made, the same on every host; or authentication = \"none\", which "
        "lets anybody on the network change results");
  }
  return control::read_key_file(settings.key_file);
}

std::vector<control::Lcore> lcores_of(const Eal& eal) {
  std::vector<control::Lcore> lcores;
  for (const unsigned worker : eal.workers()) {
    lcores.push_back({worker, static_cast<int>(rte_lcore_to_socket_id(worker))});
  }
  return lcores;
}

// Nothing else says that a core which --lcores names has nothing to do.
void warn_of_idle(const std::vector<unsigned>& lcores, const LocalCluster& cluster) {
  std::vector<unsigned> idle = lcores;
  for (std::size_t i = 0; i < cluster.pollers().size(); ++i) std::erase(idle, cluster.lcore_of(i));
  if (idle.empty()) return;
  log::warn(
      "cores without work: {}. A server here adds up on {} of those that --lcores names; "
      "server-lcores, the same for all servers, says on how many",
      fmt::join(idle, ", "), cluster.engines(cluster.nodes().servers().front()).size());
}

std::map<bcube::ServerId, std::filesystem::path> server_sockets(
    const control::RunDirectory& directory, const LocalCluster& cluster) {
  std::map<bcube::ServerId, std::filesystem::path> sockets;
  for (const bcube::ServerId server : cluster.nodes().servers()) {
    sockets[server] = directory.server_socket(cluster.topology().space().suffix(server));
  }
  return sockets;
}

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

Daemon::Daemon(control::ClusterSettings settings, const std::optional<LoneServer>& lone,
               control::RunDirectory directory, const control::DaemonLock& lock,
               const control::RunDirectory& sockets)
    : lcores_are_named_(!settings.lcores.empty()),
      settings_(with_lcores(std::move(settings), lone)),
      directory_(std::move(directory)),
      sockets_(sockets),
      key_(key_of(settings_, lone)),
      eal_(eal_options(settings_, lone)),
      quota_(settings_.trainer_memory_bytes.value_or(control::half_of_host_memory())),
      users_(settings_.allowed_users, settings_.allowed_groups),
      cluster_(make_cluster(lone)),
      key_change_(*cluster_, settings_.key_file),
      sessions_(loop_, cluster_->nodes(), nodes_clock_, cluster_->topology().space(),
                server_sockets(sockets_, *cluster_), quota_, {users_, settings_.user_sessions}),
      control_(loop_, directory_.control_socket(), users_),
      telemetry_(loop_, directory_.telemetry_socket(), "gradcubed " GRADCUBE_VERSION),
      status_telemetry_(telemetry_, [this] { return status(); }),
      stop_causes_(loop_, control_, directory_, lock) {
  if (lone.has_value()) {
    cluster_status_.emplace(cluster_->nodes(), settings_, random_number() >> 1,
                            [this] { return status(); });
  }
  GuardedMemory::install_handler();
  add_commands();
  loop_.add(events_.descriptor(), [this] { take_events(); });
  loop_.on_tick([this] { tick(); });
  // What has come from other daemons is taken in the tick that follows.
  for (const bcube::ServerId server : cluster_->nodes().servers()) {
    const MessageInbox* inbox = cluster_->nodes().at(server).engines().inbox();
    if (inbox != nullptr) loop_.add(inbox->descriptor(), [] {});
  }
  if (lcores_are_named_) warn_of_idle(settings_.lcores, *cluster_);
  launch_pollers();
}

std::unique_ptr<LocalCluster> Daemon::make_cluster(const std::optional<LoneServer>& lone) {
  LocalClusterOptions options;
  options.settings = settings_;
  options.lcores = lcores_of(eal_);
  options.incarnation = random_number() | 1;  // not 0
  options.secret = random_number();
  options.key = std::exchange(key_, std::nullopt);
  if (lone.has_value()) {
    options.servers = {lone->server};
    options.driver = lone->driver;
    options.ports = lone->ports;
  }
  return std::make_unique<LocalCluster>(
      options, clock_, aggregation::select_kernels(eal_.facts().simd_bits), events_);
}

Daemon::~Daemon() {
  stop_pollers();
  loop_.remove(events_.descriptor());
}

void Daemon::launch_pollers() {
  for (std::size_t i = 0; i < cluster_->pollers().size(); ++i) {
    Poller& poller = *cluster_->pollers()[i];
    poller.announce_run();
    running_.push_back(&poller);
    if (rte_eal_remote_launch(Poller::run_at, &poller, cluster_->lcore_of(i)) != 0) {
      running_.pop_back();
      stop_pollers();
      throw control::SetupError(
          fmt::format("cannot start a poller on core {}", settings_.lcores[i]));
    }
  }
}

void Daemon::stop_pollers() {
  for (Poller* poller : running_) poller->stop();
  for (Poller* poller : running_) poller->await_end();
  rte_eal_mp_wait_lcore();
}

void Daemon::add_commands() {
  const auto own_status = [this](const nlohmann::json&) -> nlohmann::ordered_json {
    return {{"status", status()}};
  };
  control_.add("status", own_status);
  control_.add_for_tenants("status", [this](const nlohmann::json&, uid_t user) {
    return nlohmann::ordered_json{{"status", control::status::status_for(status(), user)}};
  });
  control_.add("flows", [this](const nlohmann::json& request) -> nlohmann::ordered_json {
    return flows_json(*cluster_, jobs_of_flows(request));
  });
  if (cluster_status_.has_value()) {
    control_.add_text("status-of-all", [this](const nlohmann::json& request) {
      return cluster_status_->answer(request);
    });
  } else {
    control_.add("status-of-all", own_status);
  }
  control_.add("impair",
               [this](const nlohmann::json& request) { return cluster_->impair(request); });
  control_.add("paths", [this](const nlohmann::json& request) -> nlohmann::ordered_json {
    return paths_report(*cluster_, request);
  });
  control_.add("rekey", [this](const nlohmann::json& request) {
    return key_change_.begin(request, SteadyClock::now());
  });
}

nlohmann::ordered_json Daemon::status() {
  const std::chrono::duration<double> uptime = SteadyClock::now() - started_;
  return status_json({settings_, sockets_, eal_, *cluster_, quota_, sessions_.most_of_user(),
                      loop_.steps(), nodes_clock_.now(), uptime.count(),
                      key_change_.report(SteadyClock::now())});
}

void Daemon::take_events() {
  events_.take(
      [this](const EngineEvent& event) { cluster_->nodes().handle(event, nodes_clock_.now()); });
}

void Daemon::tick() {
  const SteadyClock::time_point now = SteadyClock::now();
  NodeGroup& nodes = cluster_->nodes();
  nodes_clock_.advance();
  take_events();  // what the last call had no memory for
  sessions_.tick(now);
  if (cluster_status_.has_value()) cluster_status_->tick(nodes_clock_.now());
  // Whoever asks meanwhile is answered between two parts.
  const auto for_a_part = [] {
    return [until = SteadyClock::now() + kPart] { return SteadyClock::now() < until; };
  };
  nodes.run(nodes_clock_.now(), for_a_part());
  if (nodes.has_more()) loop_.hurry();
  if (now >= next_look_) {
    const MayGoOn never = [] { return false; };
    nodes.look(nodes_clock_.now(), nodes.has_more() ? never : MayGoOn(for_a_part()));
    next_look_ = now + kLookEvery;
  }
  if (now >= next_look_at_waits_) {
    nodes.note_waits(nodes_clock_.now());
    next_look_at_waits_ = now + kLookAtWaitsEvery;
  }
  control_.tick(now);
  key_change_.tick(now);
  if (const auto lost = stop_causes_.look(now)) sessions_.set_closing_cause(*lost);
  if (cluster_status_.has_value() && now >= next_look_at_ports_) look_at_ports(now);
  if (stop_causes_.any()) end_soon(now);
}

void Daemon::end_soon(SteadyClock::time_point now) {
  // Servers of one process end together.
  if (cluster_status_.has_value() && !farewell_until_.has_value()) {
    sessions_.close();
    farewell_until_ = now + kFarewell;
  }
  if (!control_.all_answered()) return;
  if (farewell_until_.has_value() && now < *farewell_until_ && !cluster_->nodes().idle()) return;
  loop_.stop();
}

void Daemon::look_at_ports(SteadyClock::time_point now) {
  next_look_at_ports_ = now + kLookAtPortsEvery;
  const WrongPorts wrong = wrong_ports(cluster_->topology().space(), cluster_->engines());
  for (const std::string& text : wrong_ports_log_.news(wrong, now)) log::warn("{}", text);
  const std::vector<Port*> ports = cluster_->fabric().ports(cluster_->nodes().servers().front());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string before = ports[i]->problem();
    ports[i]->look();
    const std::string after = ports[i]->problem();
    if (after == before) continue;
    if (after.empty()) {
      log::info("port {}: its interface or device is there again", i);
    } else {
      log::error("port {}: {}", i, after);
    }
  }
}

void Daemon::run() { loop_.run(); }

}  // namespace gradcube::dataplane
