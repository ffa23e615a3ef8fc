// A test bed: one daemon per server on this host, and links between them. Which links is the
// business of its network: the kernel's, with a network namespace for each server
// (veth_network.h), memory shared with emulated switches in daemons of their own
// (memif_network.h), or datagrams between addresses of this host (udp_network.h).
//
// Nothing outlives the bed's process, however it ends: the kernel kills the daemons when the bed's
// thread ends (child_process.h), and what a network makes is gone with its processes. What a killed
// bed leaves in the run directory are sockets, as any daemon does.
//
// The constructor makes everything, or throws and has ended every process that it had started.
// run() serves the control socket until `down`, SIGTERM or SIGINT, or until the run directory is
// gone. A daemon that dies is logged and shown by `status`; the others go on. The destructor ends
// the daemons: with SIGTERM, and after some seconds with SIGKILL.
//
// Control commands: "status" asks all daemons at once (control/status/merged_status.h), "paths"
// that of the server where they begin, "impair" changes what happens on links, "down" ends the bed.
//
// Threads: the one that makes it. SIGTERM and SIGINT must be blocked.
#ifndef GRADCUBE_DATAPLANE_BED_TEST_BED_H_
#define GRADCUBE_DATAPLANE_BED_TEST_BED_H_

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/settings/cluster_key.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "dataplane/bed/bed_network.h"
#include "dataplane/bed/daemon_process.h"
#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/control_server.h"
#include "dataplane/sockets/stop_causes.h"

namespace gradcube::dataplane {

class TestBed {
 public:
  using SteadyClock = std::chrono::steady_clock;

  struct Programs {
    std::filesystem::path daemon;  // gradcubed
    std::filesystem::path server;  // runs as each server's daemon: takes gradcubed's arguments
  };

  // version: that `status` shows. lock: the run directory's; outlives the bed. Throws
  // control::UsageError or SetupError.
  TestBed(control::ClusterSettings settings, control::RunDirectory directory,
          const control::DaemonLock& lock, const Programs& programs, std::string version);
  ~TestBed();
  TestBed(const TestBed&) = delete;
  TestBed& operator=(const TestBed&) = delete;

  void run() { loop_.run(); }

 private:
  void start(const std::filesystem::path& server_program);
  void start_servers(const std::filesystem::path& program);
  void add_commands();
  void end_daemons();
  void remove_sockets();
  void tick();
  // "server [2,1]", of each.
  std::vector<std::string> names() const;
  nlohmann::ordered_json status();
  nlohmann::ordered_json paths(const nlohmann::json& request);
  nlohmann::ordered_json rekey(const nlohmann::json& request);
  nlohmann::ordered_json impair(const nlohmann::json& request);

  control::RunDirectory directory_;
  const control::OwnKeyFile key_;
  control::ClusterSettings settings_;  // with a key's file
  const control::DaemonLock& lock_;
  std::string version_;
  AllowedUsers users_;
  SteadyClock::time_point started_ = SteadyClock::now();
  std::unique_ptr<BedNetwork> network_;
  std::vector<bcube::ServerId> present_;  // the servers' numbers, ascending
  std::deque<DaemonProcess> servers_;     // in the same order
  ControlLoop loop_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<StopCauses> stop_causes_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_TEST_BED_H_
