// gradcubed without servers: emulated switches of a cluster whose servers have a daemon each,
// joined by memif (dataplane/fabric/memif/memif_switches.h).
//
// The constructor makes everything; if it fails, it throws and leaves nothing behind. run() serves
// until `down`, SIGTERM or SIGINT, or until its run directory is gone. The destructor ends the
// poller first.
//
// Control commands: "status" tells what the switches count and what is wrong with their links,
// "impair" changes that (switch_requests.h), "down" ends the daemon.
//
// Threads: the control thread makes, runs and destroys it. The poller runs on EAL's worker lcore.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_SWITCH_DAEMON_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_SWITCH_DAEMON_H_

#include <chrono>
#include <nlohmann/json.hpp>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "dataplane/fabric/memif/memif_switches.h"
#include "dataplane/host/eal.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/poller.h"
#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/control_server.h"
#include "dataplane/sockets/stop_causes.h"

namespace gradcube::dataplane {

class SwitchDaemon {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // part: which switches (control/settings/switch_parts.h). lock: the directory's; outlives the
  // daemon. Throws control::UsageError or SetupError.
  SwitchDaemon(const control::ClusterSettings& settings, unsigned part,
               control::RunDirectory directory, const control::DaemonLock& lock);
  ~SwitchDaemon();
  SwitchDaemon(const SwitchDaemon&) = delete;
  SwitchDaemon& operator=(const SwitchDaemon&) = delete;

  void run() { loop_.run(); }

 private:
  void add_commands();
  nlohmann::ordered_json status();
  void tick();

  control::ClusterSettings settings_;
  unsigned part_;
  control::RunDirectory directory_;
  Eal eal_;
  TscClock clock_;
  PacketPool frames_;
  Poller poller_;
  MemifSwitches switches_;
  ControlLoop loop_;
  ControlServer control_;
  StopCauses stop_causes_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_SWITCH_DAEMON_H_
