// gradcubed: the nodes of an embedded cluster, or that of one server on ports of a port driver
// (port_drivers.h), the pollers' threads, and the sockets on which it serves trainers and tools.
//
// The constructor makes everything; if it fails, it throws and leaves nothing behind. run() serves
// until something makes the daemon end (stop_causes.h). The destructor ends the pollers first, then
// the sockets, the nodes, the fabric and EAL.
//
// Threads: the control thread makes, runs and destroys it. Pollers run on EAL's worker lcores.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_DAEMON_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_DAEMON_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "dataplane/daemon/cabling.h"
#include "dataplane/daemon/cluster_status.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/daemon/process/attended_clock.h"
#include "dataplane/daemon/process/key_change.h"
#include "dataplane/daemon/process/session_server.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/engine/memory/memory_quota.h"
#include "dataplane/fabric/port_driver.h"
#include "dataplane/host/eal.h"
#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/control_server.h"
#include "dataplane/sockets/status_telemetry.h"
#include "dataplane/sockets/stop_causes.h"
#include "dataplane/sockets/telemetry_server.h"

namespace gradcube::dataplane {

// A server whose neighbours are in other processes.
struct LoneServer {
  bcube::ServerId server = 0;
  const PortDriver* driver = nullptr;
  std::vector<std::string> ports;  // what the driver's option names, as checked_names() returns it
};

class Daemon {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // lone: the server that it runs; nothing: all of an embedded cluster. lock: the run directory's;
  // outlives the daemon. sockets: where the trainers' are. Throws control::UsageError or
  // SetupError.
  Daemon(control::ClusterSettings settings, const std::optional<LoneServer>& lone,
         control::RunDirectory directory, const control::DaemonLock& lock,
         const control::RunDirectory& sockets);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void run();

 private:
  void launch_pollers();
  void stop_pollers();
  std::unique_ptr<LocalCluster> make_cluster(const std::optional<LoneServer>& lone);
  void add_commands();
  nlohmann::ordered_json status();
  void take_events();
  void tick();
  void look_at_ports(SteadyClock::time_point now);
  void end_soon(SteadyClock::time_point now);

  const bool lcores_are_named_;  // by whoever started it
  control::ClusterSettings settings_;
  control::RunDirectory directory_;
  control::RunDirectory sockets_;
  SteadyClock::time_point started_ = SteadyClock::now();
  std::optional<control::Secret> key_;  // of the cluster; until that has it
  Eal eal_;
  TscClock clock_;
  EventQueue events_;
  MemoryQuota quota_;
  AllowedUsers users_;
  std::unique_ptr<LocalCluster> cluster_;
  KeyChange key_change_;
  std::optional<ClusterStatus> cluster_status_;  // where other daemons have the other servers
  std::vector<Poller*> running_;                 // those whose lcore was launched
  ControlLoop loop_;
  AttendedClock nodes_clock_;
  SessionServer sessions_;
  ControlServer control_;
  TelemetryServer telemetry_;
  StatusTelemetry status_telemetry_;
  StopCauses stop_causes_;
  std::optional<SteadyClock::time_point> farewell_until_;
  SteadyClock::time_point next_look_;
  SteadyClock::time_point next_look_at_waits_;
  SteadyClock::time_point next_look_at_ports_;
  WrongPortsLog wrong_ports_log_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_DAEMON_H_
