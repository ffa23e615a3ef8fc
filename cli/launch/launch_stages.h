// What becomes of processes that belong together: who failed first, and which signal is sent when.
//
// Each process has a group: itself and what it has started. A process fails if it ends with
// another exit code than 0 or by a signal while all are to run. The first that fails stops all:
// every group gets SIGTERM, and SIGKILL when the grace time has passed. An interrupt stops all,
// too; where they are stopped already, it sends SIGKILL at once. A group that outlives a process
// that ended well is stopped alone. What SIGKILL does not end soon, because the kernel holds it or
// nobody asks for its exit code, is not waited for: a process is then taken to have ended by it.
//
// No I/O and no clock: the caller says what has happened and when, sends the orders, and comes back
// at the deadline. One thread.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_STAGES_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_STAGES_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace gradcube::cli {

// How a process has ended.
struct ProcessEnd {
  bool by_signal = false;
  int number = 0;  // the exit code, or the signal

  bool failed() const { return by_signal || number != 0; }
  // As a shell tells it: 128 + signal.
  int exit_code() const { return by_signal ? 128 + number : number; }
};

class LaunchStages {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // To the whole group of a process.
  struct Order {
    std::size_t process = 0;
    int signal = 0;
  };

  // each_alone: one that fails stops no others.
  LaunchStages(std::size_t processes, std::chrono::nanoseconds grace, bool each_alone = false);

  // The process itself has ended. Others of its group may live.
  void on_end(std::size_t process, ProcessEnd end, Time now);
  // Nobody is left of the group of a process that has ended. May be said again.
  void on_group_gone(std::size_t process);
  // All are to end. Once more changes nothing.
  void stop(Time now);
  // The user wants all to end; asked again, at once.
  void on_interrupt(Time now);
  void on_time(Time now);

  // What is to be sent, once.
  std::vector<Order> take_orders();
  // When on_time() has something to do.
  std::optional<Time> deadline() const;

  bool all_gone() const;
  // Whether this process has ended and others of its group may live.
  bool leaves_others(std::size_t process) const;
  // Nothing while it runs.
  const std::optional<ProcessEnd>& end_of(std::size_t process) const {
    return processes_[process].end;
  }
  // Whether SIGTERM and the grace time did not suffice.
  bool outstayed(std::size_t process) const { return processes_[process].outstayed; }
  std::optional<std::size_t> first_failure() const { return first_failure_; }
  // That of the first that failed; 0 without one.
  int exit_code() const;

 private:
  enum class Signalled { never, asked, killed };

  struct Process {
    std::optional<ProcessEnd> end;
    bool group_gone = false;
    bool outstayed = false;
    Signalled signalled = Signalled::never;
    Time deadline;  // of the next step, unless it runs
  };

  void ask(std::size_t process, Time now);
  void kill(std::size_t process, Time now);

  const std::chrono::nanoseconds grace_;
  const bool each_alone_;
  std::vector<Process> processes_;
  std::vector<Order> orders_;
  std::optional<std::size_t> first_failure_;
  bool stopping_ = false;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_STAGES_H_
