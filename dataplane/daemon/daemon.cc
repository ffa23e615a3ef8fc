#include "dataplane/daemon/daemon.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <rte_launch.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

#include "control/base/errors.h"
#include "dataplane/daemon/impair_request.h"
#include "dataplane/daemon/status.h"
#include "dataplane/daemon/trainer_region.h"
#include "dataplane/engine/guarded_memory.h"

namespace gradcube::dataplane {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);
constexpr auto kLookAtWaitsEvery = std::chrono::milliseconds(100);
constexpr auto kLookAtDirectoryEvery = std::chrono::milliseconds(200);
constexpr auto kTouchLockEvery = std::chrono::hours(1);

control::ClusterSettings with_lcores(control::ClusterSettings settings) {
  const std::vector<unsigned> usable = usable_cores();
  if (settings.lcores.empty()) {
    // More lcores than all servers have threads would stay idle.
    const std::size_t useful =
        std::size_t{settings.topology.servers()} * settings.topology.levels();
    settings.lcores.assign(usable.begin(), usable.begin() + static_cast<std::ptrdiff_t>(
                                                                std::min(useful, usable.size())));
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

EalOptions eal_options(const control::ClusterSettings& settings) {
  EalOptions options;
  options.cores = settings.lcores;
  options.memory_megabytes =
      packet_megabytes(settings, static_cast<unsigned>(settings.lcores.size()));
  options.log = stderr;
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
    const control::RunDirectory& directory, const EmbeddedCluster& cluster) {
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

EmbeddedClusterOptions cluster_options(const control::ClusterSettings& settings,
                                       const std::vector<bcube::ServerId>& servers,
                                       const Eal& eal) {
  EmbeddedClusterOptions options;
  options.settings = settings;
  options.servers = servers;
  options.lcores = lcores_of(eal);
  options.incarnation = fresh_incarnation();
  return options;
}

int run_poller(void* poller) {
  static_cast<Poller*>(poller)->run();
  return 0;
}

}  // namespace

Daemon::Daemon(control::ClusterSettings settings, const std::vector<bcube::ServerId>& servers,
               control::RunDirectory directory, const control::DaemonLock& lock)
    : settings_(with_lcores(std::move(settings))),
      directory_(std::move(directory)),
      lock_(lock),
      eal_(eal_options(settings_)),
      quota_(settings_.trainer_memory_bytes.value_or(default_memory_quota())),
      cluster_(cluster_options(settings_, servers, eal_), clock_,
               aggregation::select_kernels(eal_.facts().simd_bits), events_),
      sessions_(loop_, cluster_.nodes(), nodes_clock_, cluster_.topology().space(),
                server_sockets(directory_, cluster_), quota_),
      control_(loop_, directory_.control_socket()) {
  GuardedMemory::install_handler();
  watch_signals();
  add_commands();
  loop_.add(events_.descriptor(), [this] {
    for (const EngineEvent& event : events_.take())
      cluster_.nodes().handle(event, nodes_clock_.now());
  });
  loop_.on_tick([this] { tick(); });
  launch_pollers();
}

Daemon::~Daemon() {
  stop_pollers();
  loop_.remove(events_.descriptor());
  if (signals_ >= 0) {
    loop_.remove(signals_);
    close(signals_);
  }
}

void Daemon::launch_pollers() {
  for (std::size_t i = 0; i < cluster_.pollers().size(); ++i) {
    Poller& poller = *cluster_.pollers()[i];
    poller.announce_run();
    running_.push_back(&poller);
    if (rte_eal_remote_launch(run_poller, &poller, cluster_.lcore_of(i)) != 0) {
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

void Daemon::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::system_error(errno, std::generic_category(), "cannot watch signals");
  loop_.add(signals_, [this] {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    spdlog::info("ending on signal {}", info.ssi_signo);
    ending_ = true;
  });
}

void Daemon::add_commands() {
  control_.add("status", [this](const nlohmann::json&) -> nlohmann::ordered_json {
    const std::chrono::duration<double> uptime = SteadyClock::now() - started_;
    return {{"status", status_json({settings_, directory_, eal_, cluster_, quota_,
                                    nodes_clock_.now(), uptime.count()})}};
  });
  control_.add("impair", [this](const nlohmann::json& request) -> nlohmann::ordered_json {
    return impair(cluster_.fabric(), cluster_.topology(), request, settings_.seed);
  });
  control_.add("down", [this](const nlohmann::json&) -> nlohmann::ordered_json {
    spdlog::info("ending on request");
    ending_ = true;
    return nlohmann::ordered_json::object();
  });
}

void Daemon::tick() {
  const SteadyClock::time_point now = SteadyClock::now();
  NodeGroup& nodes = cluster_.nodes();
  nodes_clock_.advance();
  sessions_.tick(now);
  nodes.run(nodes_clock_.now());
  if (now >= next_look_) {
    nodes.look(nodes_clock_.now());
    next_look_ = now + kLookEvery;
  }
  if (now >= next_look_at_waits_) {
    nodes.note_waits(nodes_clock_.now());
    next_look_at_waits_ = now + kLookAtWaitsEvery;
  }
  control_.tick(now);
  if (now >= next_look_at_directory_) look_at_run_directory(now);
  if (ending_ && control_.all_answered()) loop_.stop();
}

void Daemon::look_at_run_directory(SteadyClock::time_point now) {
  next_look_at_directory_ = now + kLookAtDirectoryEvery;
  if (!ending_ && !lock_.is_in(directory_)) {
    const std::string reason =
        fmt::format("the run directory {} was removed or replaced", directory_.path().string());
    spdlog::error("{}: ending", reason);
    sessions_.set_closing_reason("the daemon is shutting down: " + reason);
    ending_ = true;
  }
  if (now >= next_touch_) {
    lock_.touch();
    next_touch_ = now + kTouchLockEvery;
  }
}

void Daemon::run() { loop_.run(); }

}  // namespace gradcube::dataplane
