#include "dataplane/daemon/daemon.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <rte_launch.h>

#include "control/base/errors.h"
#include "control/base/host_memory.h"
#include "dataplane/bed/flows_request.h"
#include "dataplane/daemon/embedded_cluster.h"
#include "dataplane/daemon/impair_request.h"
#include "dataplane/daemon/interface_cluster.h"
#include "dataplane/daemon/nic_sizing.h"
#include "dataplane/daemon/paths_request.h"
#include "dataplane/daemon/status.h"
#include "dataplane/engine/guarded_memory.h"
#include "dataplane/fabric/nic/pci_nic.h"
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

bool is_on_memif(const control::ClusterSettings& settings, const std::optional<LoneServer>& lone) {
  return lone.has_value() && settings.fabric == control::FabricKind::memif;
}

// How many lcores are of use to the servers that are here.
std::size_t useful_lcores(const control::ClusterSettings& settings,
                          const std::optional<LoneServer>& lone) {
  const std::size_t threads = settings.topology.ports();
  if (!lone.has_value()) return settings.topology.servers() * threads;
  if (is_on_memif(settings, lone)) return settings.server_lcores;
  // How many queues a NIC has is known when DPDK runs, and a frame that comes to the wrong one is
  // handed over. So who wants several says so.
  if (!lone->nics.empty()) return 1;
  // The queues of a port on an interface share its rate evenly, and a thread uses one at a time.
  return settings.rates.limited() ? 1 : threads;
}

control::ClusterSettings with_lcores(control::ClusterSettings settings,
                                     const std::optional<LoneServer>& lone) {
  const std::vector<unsigned> usable = usable_cores();
  if (settings.lcores.empty()) {
    const std::size_t useful = std::min(useful_lcores(settings, lone), usable.size());
    settings.lcores.assign(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(useful));
  }
  if (is_on_memif(settings, lone) && settings.lcores.size() != settings.server_lcores) {
    throw control::UsageError(fmt::format(
        "lcores: there are {}, and server-lcores is {}: expected as many, as the memif links have "
        "that many queues at the switches",
        settings.lcores.size(), settings.server_lcores));
  }
  for (const unsigned core : settings.lcores) {
    if (std::find(usable.begin(), usable.end(), core) == usable.end()) {
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
  const Steering steering =
      lone.has_value() ? steering_of_ports(settings, lone->nics) : Steering::certain;
  const auto lcores = static_cast<unsigned>(settings.lcores.size());
  EalOptions options;
  options.cores = settings.lcores;
  options.memory_megabytes = packet_megabytes(settings, lcores, payloads, steering);
  options.log = stderr;
  if (lone.has_value() && !lone->nics.empty()) {
    check_nics(lone->nics);
    options.pci_devices = lone->nics;
    options.memory_megabytes += nic_megabytes(settings, lcores);
    // A NIC is given addresses of memory, and only huge pages keep theirs.
    options.huge_pages = HugePages::always;
  }
  return options;
}

std::vector<control::Lcore> lcores_of(const Eal& eal) {
  std::vector<control::Lcore> lcores;
  for (const unsigned worker : eal.workers()) {
    lcores.push_back({worker, static_cast<int>(rte_lcore_to_socket_id(worker))});
  }
  return lcores;
}

std::map<bcube::ServerId, std::filesystem::path> server_sockets(
    const control::RunDirectory& directory, const LocalCluster& cluster) {
  std::map<bcube::ServerId, std::filesystem::path> sockets;
  for (const bcube::ServerId server : cluster.nodes().servers()) {
    sockets[server] = directory.server_socket(cluster.topology().space().suffix(server));
  }
  return sockets;
}

// Greater than that of any earlier daemon, unless the system's clock was set back.
control::Incarnation fresh_incarnation() {
  return static_cast<control::Incarnation>(std::chrono::duration_cast<std::chrono::microseconds>(
                                               std::chrono::system_clock::now().time_since_epoch())
                                               .count());
}

template <typename Options>
Options cluster_options(const control::ClusterSettings& settings, const Eal& eal) {
  Options options;
  options.settings = settings;
  options.lcores = lcores_of(eal);
  options.incarnation = fresh_incarnation();
  return options;
}

}  // namespace

Daemon::Daemon(control::ClusterSettings settings, const std::optional<LoneServer>& lone,
               control::RunDirectory directory, const control::DaemonLock& lock,
               const control::RunDirectory& sockets)
    : settings_(with_lcores(std::move(settings), lone)),
      directory_(std::move(directory)),
      sockets_(sockets),
      directory_watch_(directory_, lock),
      eal_(eal_options(settings_, lone)),
      quota_(settings_.trainer_memory_bytes.value_or(control::half_of_host_memory())),
      cluster_(make_cluster(lone)),
      sessions_(loop_, cluster_->nodes(), nodes_clock_, cluster_->topology().space(),
                server_sockets(sockets_, *cluster_), quota_),
      control_(loop_, directory_.control_socket()),
      telemetry_(loop_, directory_.telemetry_socket(), "gradcubed " GRADCUBE_VERSION),
      status_telemetry_(telemetry_, [this] { return status(); }),
      signals_(loop_, [this] { ending_ = true; }) {
  if (lone.has_value()) {
    cluster_status_.emplace(cluster_->nodes(), settings_, fresh_incarnation(),
                            [this] { return status(); });
  }
  GuardedMemory::install_handler();
  add_commands();
  loop_.add(events_.descriptor(), [this] {
    for (const EngineEvent& event : events_.take())
      cluster_->nodes().handle(event, nodes_clock_.now());
  });
  loop_.on_tick([this] { tick(); });
  // What has come from other daemons is taken in the tick that follows.
  for (const bcube::ServerId server : cluster_->nodes().servers()) {
    const MessageInbox* inbox = cluster_->nodes().at(server).engines().inbox();
    if (inbox != nullptr) loop_.add(inbox->descriptor(), [] {});
  }
  launch_pollers();
}

std::unique_ptr<LocalCluster> Daemon::make_cluster(const std::optional<LoneServer>& lone) {
  const aggregation::Kernels& kernels = aggregation::select_kernels(eal_.facts().simd_bits);
  if (!lone.has_value()) {
    auto cluster = std::make_unique<EmbeddedCluster>(
        cluster_options<EmbeddedClusterOptions>(settings_, eal_), clock_, kernels, events_);
    embedded_ = &cluster->fabric();
    return cluster;
  }
  auto options = cluster_options<InterfaceClusterOptions>(settings_, eal_);
  options.servers = {lone->server};
  options.interfaces = lone->interfaces;
  options.nics = lone->nics;
  options.switches = lone->switches;
  auto cluster = std::make_unique<InterfaceCluster>(options, clock_, kernels, events_);
  interfaces_ = cluster->interfaces();
  ethdevs_ = cluster->ethdevs();
  return cluster;
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
  control_.add("status", [this](const nlohmann::json&) -> nlohmann::ordered_json {
    return {{"status", status()}};
  });
  control_.add("flows", [this](const nlohmann::json& request) -> nlohmann::ordered_json {
    return flows_json(*cluster_, first_flow(request));
  });
  if (cluster_status_.has_value()) {
    control_.add_text("status-of-all", [this](const nlohmann::json& request) {
      return cluster_status_->answer(request);
    });
  } else {
    control_.add("status-of-all", [this](const nlohmann::json&) -> nlohmann::ordered_json {
      return {{"status", status()}};
    });
  }
  control_.add("impair", [this](const nlohmann::json& request) -> nlohmann::ordered_json {
    if (embedded_ == nullptr) {
      throw control::UsageError(
          settings_.fabric == control::FabricKind::memif
              ? "the links of this server are emulated in another daemon: that of "
                "its switches impairs them"
              : "the links of this server are not emulated: `ip link set dev "
                "INTERFACE down` takes one down");
    }
    return impair(*embedded_, cluster_->topology(), request, settings_.seed);
  });
  control_.add("paths", [this](const nlohmann::json& request) -> nlohmann::ordered_json {
    return paths_report(*cluster_, request);
  });
  control_.add("down", [this](const nlohmann::json&) -> nlohmann::ordered_json {
    log::info("ending on request");
    ending_ = true;
    return nlohmann::ordered_json::object();
  });
}

nlohmann::ordered_json Daemon::status() {
  const std::chrono::duration<double> uptime = SteadyClock::now() - started_;
  return status_json({settings_, sockets_, eal_, *cluster_, embedded_, interfaces_, ethdevs_,
                      quota_, loop_.steps(), nodes_clock_.now(), uptime.count()});
}

void Daemon::tick() {
  const SteadyClock::time_point now = SteadyClock::now();
  NodeGroup& nodes = cluster_->nodes();
  nodes_clock_.advance();
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
  if (const auto lost = directory_watch_.look(now); lost && !ending_) {
    log::error("{}: ending", *lost);
    sessions_.set_closing_cause(*lost);
    ending_ = true;
  }
  if (embedded_ == nullptr && now >= next_look_at_ports_) look_at_ports(now);
  if (ending_) end_soon(now);
}

void Daemon::end_soon(SteadyClock::time_point now) {
  // All servers of an embedded cluster end together.
  if (embedded_ == nullptr && !farewell_until_.has_value()) {
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
  for (unsigned i = 0; interfaces_ != nullptr && i < cluster_->topology().ports(); ++i) {
    PacketPort& port = interfaces_->port(i);
    const std::string before = port.problem();
    port.look_for_interface();
    if (port.problem() == before) continue;
    if (port.problem().empty()) {
      log::info("port {}: its network interface is there again", i);
    } else {
      log::error("port {}: {}", i, port.problem());
    }
  }
}

void Daemon::run() { loop_.run(); }

}  // namespace gradcube::dataplane
