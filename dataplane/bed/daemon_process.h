// A daemon that a test bed starts: of one server, in a network namespace of its own where the
// fabric wants it, or of switches.
//
// The constructor starts a process that enters its namespace and waits there until its network is
// made; then execute() lets it become the daemon. The namespace lasts as long as this object, so
// links and the other servers see of a daemon that dies only that it is silent.
//
// The daemon reports on a pipe, in one line of JSON, that it is ready, as gradcubed does for
// `gradcube up`. Its output goes to the log in its own run directory.
//
// Threads: the control thread, which must not end before this object. Errors are SetupError.
#ifndef GRADCUBE_DATAPLANE_BED_DAEMON_PROCESS_H_
#define GRADCUBE_DATAPLANE_BED_DAEMON_PROCESS_H_

#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/settings/run_directory.h"
#include "dataplane/bed/child_process.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

class DaemonProcess {
 public:
  using SteadyClock = std::chrono::steady_clock;

  enum class Network { own, shared };

  // program: with its arguments; "--ready-fd N --parent PID" is added. directory: the daemon's own,
  // which is made. An earlier log there is kept aside.
  DaemonProcess(std::vector<std::string> program, control::RunDirectory directory, Network network);

  // To be called before all else. With a shared network, too: until the process waits.
  void await_namespace(SteadyClock::time_point deadline);
  int network_namespace() const { return namespace_.get(); }

  void execute();

  // A descriptor that has become readable when read_report() is to be called; -1 after the report.
  int report_descriptor() const { return report_.get(); }
  // Reads what there is. Throws what the daemon says if it refuses to start: a UsageError or a
  // SetupError.
  void read_report();
  bool ready() const { return ready_; }

  // Notes that the process has ended, if it has, and then returns true once.
  bool note_end();
  // When and how it ended, as noted; empty while it lives.
  std::string end_text() const;

  ChildProcess& process() { return process_; }
  const ChildProcess& process() const { return process_; }
  const control::RunDirectory& directory() const { return directory_; }

 private:
  struct Ends;
  DaemonProcess(std::vector<std::string> program, control::RunDirectory directory, Network network,
                Ends ends);
  void refuse_start(SteadyClock::time_point deadline);

  control::RunDirectory directory_;
  control::Descriptor gate_;    // tells how the namespace was made, and hears when to go on
  control::Descriptor report_;  // the daemon's line
  control::Descriptor namespace_;
  ChildProcess process_;
  std::string line_;
  bool ready_ = false;
  std::optional<std::string> end_;
  SteadyClock::time_point ended_at_;
};

// Runs `step` for a daemon, whose name ("server [2,1]") begins the message of an error.
template <typename Step>
void for_daemon(const std::string& name, Step step) {
  try {
    step();
  } catch (const control::UsageError& error) {
    throw control::UsageError(name + ": " + error.what());
  } catch (const control::SetupError& error) {
    throw control::SetupError(name + ": " + error.what());
  }
}

// Until all are ready; they start at the same time. names: as above, in the order of the daemons.
// logs: where to look, for a message. Throws what read_report() does, and a SetupError that names
// those that are not ready in time.
void await_reports(std::deque<DaemonProcess>& daemons, const std::vector<std::string>& names,
                   const control::RunDirectory& logs);

// Writes into the log when one of them ends. They outlive the loop.
void watch_daemons(ControlLoop& loop, std::deque<DaemonProcess>& daemons,
                   const std::vector<std::string>& names);

std::vector<std::filesystem::path> control_sockets(const std::deque<DaemonProcess>& daemons);

// With SIGTERM, and after some seconds with SIGKILL.
void end_daemons(std::deque<DaemonProcess>& daemons, const std::vector<std::string>& names);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_DAEMON_PROCESS_H_
