// The daemon of one server, in a network namespace of its own.
//
// The constructor starts a process that enters a new namespace and waits there until its network is
// made; then execute() lets it become the daemon. The namespace lasts as long as this object, so
// links and the other servers see of a daemon that dies only that it is silent.
//
// The daemon reports on a pipe, in one line of JSON, that it is ready, as gradcubed does for
// `gradcube up`. Its output goes to the log in its own run directory.
//
// Threads: the control thread, which must not end before this object. Errors are SetupError.
#ifndef GRADCUBE_DATAPLANE_BED_SERVER_PROCESS_H_
#define GRADCUBE_DATAPLANE_BED_SERVER_PROCESS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "control/base/descriptor.h"
#include "control/settings/run_directory.h"
#include "dataplane/bed/child_process.h"

namespace gradcube::dataplane {

class ServerProcess {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // program: with its arguments; "--ready-fd N" is added. directory: the server's own, which is
  // made. An earlier log there is kept aside.
  ServerProcess(std::vector<std::string> program, control::RunDirectory directory);

  // To be called before all else.
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
  // "signal 9 (Killed)"; nothing while it lives.
  const std::optional<std::string>& end() const { return end_; }
  SteadyClock::time_point ended_at() const { return ended_at_; }

  ChildProcess& process() { return process_; }
  const ChildProcess& process() const { return process_; }
  const control::RunDirectory& directory() const { return directory_; }

 private:
  struct Ends;
  ServerProcess(std::vector<std::string> program, control::RunDirectory directory, Ends ends);
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

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_SERVER_PROCESS_H_
