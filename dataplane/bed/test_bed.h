// A test bed: one daemon per server on this host, in network namespaces, with real links between
// them.
//
// Each server's daemon has a namespace of its own, with an interface for each level. The other ends
// of the links are ports of bridges, one bridge per switch, in the namespace of the bed
// (bed_links.h, network_commands.h). No interface has an IP address, and the kernel speaks no IPv6
// there, so it sends and answers nothing itself.
//
// Nothing outlives the bed's process, however it ends. Its namespaces have no names: they, their
// links and bridges are gone with the processes in them, and the kernel kills the daemons when the
// bed's thread ends (child_process.h). What a killed bed leaves in the run directory are sockets,
// as any daemon does.
//
// The constructor makes everything, or throws and has ended every process that it had started.
// run() serves the control socket until `down`, SIGTERM or SIGINT, or until the run directory is
// gone. A daemon that dies is logged and shown by `status`; the others go on. The destructor ends
// the daemons: with SIGTERM, and after some seconds with SIGKILL.
//
// Control commands: "status" asks all daemons at once (merged_status.h), "impair" takes links down
// and up (link_request.h), "down" ends the bed.
//
// Threads: the one that makes it, which it moves into the bed's namespace for good. Others keep
// theirs. SIGTERM and SIGINT must be blocked. Needs CAP_SYS_ADMIN, CAP_NET_ADMIN and iproute2.
#ifndef GRADCUBE_DATAPLANE_BED_TEST_BED_H_
#define GRADCUBE_DATAPLANE_BED_TEST_BED_H_

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "control/base/descriptor.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "dataplane/bed/bed_links.h"
#include "dataplane/bed/server_process.h"
#include "dataplane/sockets/control_loop.h"
#include "dataplane/sockets/control_server.h"

namespace gradcube::dataplane {

class TestBed {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // server_program: runs as the daemon of each server; gradcubed, or what takes the same arguments.
  // version: that `status` shows. lock: the run directory's; outlives the bed. Throws
  // control::UsageError or SetupError.
  TestBed(control::ClusterSettings settings, control::RunDirectory directory,
          const control::DaemonLock& lock, const std::filesystem::path& server_program,
          std::string version);
  ~TestBed();
  TestBed(const TestBed&) = delete;
  TestBed& operator=(const TestBed&) = delete;

  void run() { loop_.run(); }

 private:
  void start(const std::filesystem::path& server_program);
  void start_servers(const std::filesystem::path& program);
  void make_network();
  void await_reports();
  void watch_signals();
  void watch_servers();
  void add_commands();
  void end_servers();
  void remove_sockets();
  void tick();
  std::span<const BedLink> links_of(bcube::ServerId server) const;
  std::string name_of(bcube::ServerId server) const;
  // When and how its daemon ended; empty while it lives.
  std::string end_text(bcube::ServerId server) const;
  nlohmann::ordered_json status();
  nlohmann::ordered_json impair(const nlohmann::json& request);

  control::ClusterSettings settings_;
  control::RunDirectory directory_;
  const control::DaemonLock& lock_;
  std::string version_;
  SteadyClock::time_point started_ = SteadyClock::now();
  std::filesystem::path ip_;
  std::filesystem::path tc_;
  std::vector<BedLink> links_;
  std::vector<bool> links_up_;
  std::deque<ServerProcess> servers_;  // by number
  ControlLoop loop_;
  std::unique_ptr<ControlServer> control_;
  control::Descriptor signals_;
  bool ending_ = false;
  SteadyClock::time_point next_look_;
  SteadyClock::time_point next_touch_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_TEST_BED_H_
