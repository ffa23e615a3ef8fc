// Runs processes that belong together, those of `gradcube run` or a launcher for each host: starts
// them, passes on what they write, and ends all of them when one fails (launch_stages.h) or a
// signal comes.
//
// However this process ends, the groups of its processes end with it (launch_guard.h). What has
// made itself a session of its own is left alone. Orphans become this process's children, so that
// their groups' ends are seen. One thread. Errors are control::SetupError; then all are ended.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "cli/launch/launch_guard.h"
#include "cli/launch/launch_process.h"
#include "cli/launch/launch_signals.h"
#include "cli/launch/launch_stages.h"
#include "cli/launch/launch_text.h"
#include "control/base/descriptor.h"

namespace gradcube::cli {

struct LaunchSettings {
  std::vector<LaunchTask> tasks{};
  std::chrono::nanoseconds grace{};
  bool output_to_errors = false;  // standard output is for something else
  bool keeps_output = false;      // what they write is kept, and passed on to nobody
  bool each_alone = false;        // one that fails does not end the others
  int hangup = -1;                // a descriptor: what comes there, its end above all, ends all
};

struct LaunchReport {
  std::vector<ProcessEnd> ends{};            // by task
  std::vector<std::size_t> killed{};         // tasks that did not heed SIGTERM in time
  std::optional<std::size_t> first_failure;  // a task
  int exit_code = 0;                         // of that one
  int interrupted_by = 0;                    // a signal
  int output_error = 0;                      // errno: standard output cannot be written
};

class Launcher {
 public:
  using Time = LaunchStages::Time;

  // Starts all. Both have to outlive this.
  Launcher(const LaunchSettings& settings, const LaunchSignals& signals);
  // Kills what still runs.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Passes on what they write, or keeps it, until enough() says so, the deadline has come, a signal
  // has come, one has failed (unless each is alone), or all have ended. Returns what enough() says
  // then.
  bool run_until(const std::function<bool()>& enough, Time deadline);
  // Returns when all have ended and what they wrote has been passed on.
  LaunchReport finish();

  // To a task's standard input, as it takes it; in vain where it has ended.
  void tell(std::size_t task, std::string_view text);
  // All are to end.
  void stop();
  // It is to live on when this is gone, and counts as one that ended well. For one with an input.
  void release(std::size_t task);

  // How it has ended; nothing while it runs.
  const std::optional<ProcessEnd>& end_of(std::size_t task) const { return stages_.end_of(task); }
  // What it has written to standard output and to standard error, if that is kept. The caller may
  // take from it.
  std::string& output(std::size_t task) { return kept_[task][0]; }
  std::string& errors(std::size_t task) { return kept_[task][1]; }
  int interrupted_by() const { return interrupted_by_; }

 private:
  // What one process writes to one of its streams.
  struct Stream {
    control::Descriptor pipe;
    LaunchLines lines;
    LaunchOutlet* outlet;  // null: it is kept
    std::string* text;     // where it goes
  };

  void start();
  void end_all();
  void add_stream(control::Descriptor pipe, std::size_t task, int kind);
  void tell_some(std::size_t task);
  void step(std::optional<Time> deadline);
  void wait_for_news(std::optional<Time> deadline);
  int patience(std::optional<Time> deadline) const;
  void read_some(Stream& stream);
  void write_some();
  bool heed_signals();
  void reap();
  void look_at_groups();
  void send_orders();
  void drain();
  void write_rest();

  const LaunchSettings& settings_;
  const LaunchSignals& signals_;
  LaunchGuard guard_;
  LaunchStages stages_;
  std::array<LaunchOutlet, 2> outlets_;
  std::vector<std::array<std::string, 2>> kept_;  // by task
  std::vector<control::Descriptor> inputs_;       // by task
  std::vector<std::string> untold_;               // what these have not taken yet
  std::vector<pid_t> pids_;                       // by task
  std::map<pid_t, std::size_t> tasks_;
  std::vector<Stream> streams_;
  int hangup_;
  int interrupted_by_ = 0;
  int output_error_ = 0;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_H_
