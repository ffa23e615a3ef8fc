// Which jobs an engine looks at in each iteration.
//
// A look touches memory that nobody else touches: the job's, its session's, and its trainer's. With
// dozens of idle jobs at an engine these looks would take longer than the work. So a job that runs
// and has had nothing to do for kIdle dozes: its trainer is asked to ring when it submits, as while
// the poller sleeps (session.h), and only a few of those that doze are looked at in an iteration,
// in turn. All others are watched.
//
//   each iteration:      look(now), then what watched() have to do; record_work() of those that did
//   before a sleep:      prepare_wait(), and an iteration
//   before a job changes its state, or anything of it is asked: wake(job)
//
// No call is lost. The trainer of a job that dozes rings, and another engine that has published
// something wakes the poller: each ends one sleep, and neither says which job it is about. So the
// last iteration before a sleep looks at all jobs that doze.
//
// Owned and used by one engine. add() and remove() allocate and belong to set-up.
#ifndef GRADCUBE_DATAPLANE_ENGINE_JOB_WATCH_H_
#define GRADCUBE_DATAPLANE_ENGINE_JOB_WATCH_H_

#include <cstddef>
#include <vector>

#include "dataplane/engine/engine_job.h"
#include "protocol/time.h"

namespace gradcube::dataplane {

class JobWatch {
 public:
  static constexpr protocol::Nanoseconds kIdle = 10 * protocol::kMillisecond;
  // Of the jobs that doze, in an iteration.
  static constexpr std::size_t kLooks = 2;

  // The job is watched.
  void add(EngineJob& job);
  void remove(EngineJob& job);

  const std::vector<EngineJob*>& watched() const { return watched_; }
  std::size_t dozing() const { return dozing_.size(); }

  // Wakes those of a few that have something to do, and lets one doze that has had nothing.
  void look(protocol::Nanoseconds now);
  // The job is watched for kIdle after the last look(), and as long as it has something to do.
  void wake(EngineJob& job);
  void record_work(EngineJob& job) { job.worked_at = now_; }

  // The trainers of the watched ring from now on.
  void prepare_wait();
  void finish_wait();

 private:
  static bool has_work(const EngineJob& job);
  void look_at(std::size_t dozing);
  void let_one_doze();

  std::vector<EngineJob*> watched_;
  std::vector<EngineJob*> dozing_;  // with room for all
  std::size_t next_dozing_ = 0;     // to look at
  std::size_t next_watched_ = 0;    // that may doze
  bool sleeps_next_ = false;
  protocol::Nanoseconds now_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_JOB_WATCH_H_
