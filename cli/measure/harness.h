// What every measurement has: the sessions of the trainers that are here, a thread for each,
// meetings between them, waits that end early, and the time of an iteration.
//
// A failure or an interrupt (interrupt.h) in one thread ends the measurement for all of them: run()
// throws the first error, once. Trainers are numbered as they were given, from 0.
#ifndef GRADCUBE_CLI_MEASURE_HARNESS_H_
#define GRADCUBE_CLI_MEASURE_HARNESS_H_

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/cluster/running_cluster.h"
#include "control/base/errors.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::cli {

// An iteration took longer than it may. It says why, as the trainer's session does.
struct IterationTimeout : control::SetupError {
  using SetupError::SetupError;
};

// What every measurement is told: the job that it makes, and how often it measures.
struct JobSettings {
  std::string algorithm;                   // asked of the daemon; empty: the cluster's default
  std::vector<control::ServerId> members;  // the servers of the job; empty: all
  unsigned trainers = 1;                   // on each server
  bool reproducible = false;               // asked of the daemon
  unsigned iterations = 5;
  unsigned warmup = 1;  // iterations that are made, and not reported
  bool check = false;
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // of an iteration
};

// What the thread of a trainer does in each iteration, whose number it is given.
struct IterationParts {
  std::function<void(unsigned)> prepare;
  std::function<void(unsigned)> timed;  // calls start() and end()
  std::function<void(unsigned)> check;  // only with JobSettings::check
};

// Throws a SetupError that says what the host has too little of.
std::jthread start_thread(std::function<void()> work);

class Harness {
 public:
  using Clock = std::chrono::steady_clock;

  // trainers: of this process, by ascending rank; at least one, of all_ranks. Opens their sessions.
  // Throws a SetupError unless the daemon gives each its rank.
  Harness(const std::vector<PerfTrainer>& trainers, std::uint32_t all_ranks, const std::string& job,
          const JobSettings& settings);

  unsigned trainers() const { return static_cast<unsigned>(sessions_.size()); }
  std::uint32_t all_ranks() const { return all_ranks_; }
  control::Rank rank(unsigned trainer) const { return ranks_[trainer]; }
  Session& session(unsigned trainer) { return sessions_[trainer]; }
  gradcube_session* handle(unsigned trainer) const { return sessions_[trainer].handle(); }
  int milliseconds() const { return static_cast<int>(settings_.timeout.count()); }

  // Begins a row. what: "a round of the hub", of which a timeout says that it is not done.
  void measures(std::string what);
  // Calls work(trainer) on a thread for each, and then, whatever it has thrown, end(trainer).
  void run(
      const std::function<void(unsigned)>& work,
      const std::function<void(unsigned)>& end = [](unsigned) {});

  // How many iterations of the row have ended. Any thread.
  unsigned iterations_done() const { return iterations_done_; }
  // What those took that are not warm-up, in the order of measurement.
  const std::vector<double>& row_seconds() const { return row_seconds_; }

  // The rest is for these threads, or one that does the work of all. What throws throws a
  // SetupError where the measurement is over, or gradcube::Error.

  void require(unsigned trainer, int code) const { detail::check(code, handle(trainer)); }

  // All iterations of a row: the trainers meet before and after each part of one, those of other
  // processes before the timed part alone. Returns early where another trainer has failed.
  void iterate(unsigned trainer, const IterationParts& parts);

  // The trainers that are here. False: one of them has failed.
  bool meet();
  bool has_failed() const { return failed_; }
  // Those of other processes, too, by a barrier of the job's.
  void meet_job(unsigned trainer) const;

  Clock::time_point deadline() const { return Clock::now() + settings_.timeout; }
  // Throws IterationTimeout where the request has not ended by then.
  void wait(unsigned trainer, std::uint64_t request, Clock::time_point until) const;
  // Throws where it was interrupted, or another trainer has failed: for loops that never wait long.
  void look_up() const;

  // An iteration is from the first start to the last end.
  void start(unsigned trainer) { starts_[trainer] = Clock::now(); }
  void end(unsigned trainer) { ends_[trainer] = Clock::now(); }
  double seconds() const;
  // Whether the trainer ended before all had started.
  bool ended_early(unsigned trainer) const;

 private:
  void guarded(unsigned trainer, const std::function<void(unsigned)>& work);
  void fail(std::exception_ptr error);

  const std::uint32_t all_ranks_;
  const JobSettings settings_;
  std::vector<control::Rank> ranks_;
  std::vector<Session> sessions_;
  std::optional<std::barrier<>> meeting_;  // of the threads that are at their work
  std::atomic<bool> failed_{false};
  std::vector<Clock::time_point> starts_;
  std::vector<Clock::time_point> ends_;
  std::string what_;
  std::atomic<unsigned> iterations_done_{0};
  std::vector<double> row_seconds_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_HARNESS_H_
