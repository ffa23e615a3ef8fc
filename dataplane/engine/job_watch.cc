#include "dataplane/engine/job_watch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "dataplane/engine/session/session.h"

namespace gradcube::dataplane {

namespace {

// A trainer rings after it has submitted, so without a submission there is no new ring. One that
// came late is drained with the next.
void end_sleep(Session& session) {
  session.set_asleep(false);
  if (session.has_submission()) session.drain_doorbells();
}

}  // namespace

void JobWatch::add(EngineJob& job) {
  job.worked_at = now_;
  watched_.push_back(&job);
  watched_.reserve(watched_.size() + dozing_.size());
  dozing_.reserve(watched_.size() + dozing_.size());
}

void JobWatch::remove(EngineJob& job) {
  wake(job);
  std::erase(watched_, &job);
}

void JobWatch::wake(EngineJob& job) {
  job.worked_at = now_;
  const auto found = std::find(dozing_.begin(), dozing_.end(), &job);
  if (found == dozing_.end()) return;
  *found = dozing_.back();
  dozing_.pop_back();
  watched_.push_back(&job);
  if (job.is_leader()) end_sleep(job.session());
}

bool JobWatch::has_work(const EngineJob& job) {
  return (job.is_leader() && job.session().has_submission()) ||
         job.seen != job.session().published() ||
         (job.mailroom() != nullptr && job.mailroom()->has_departures());
}

void JobWatch::look_at(std::size_t dozing) {
  EngineJob& job = *dozing_[dozing];
  if (has_work(job)) wake(job);
}

void JobWatch::look(protocol::Nanoseconds now) {
  now_ = now;
  if (std::exchange(sleeps_next_, false)) {
    for (std::size_t i = dozing_.size(); i > 0; --i) look_at(i - 1);
  }
  for (std::size_t looks = std::min(kLooks, dozing_.size()); looks > 0; --looks) {
    if (dozing_.empty()) break;
    if (next_dozing_ >= dozing_.size()) next_dozing_ = 0;
    look_at(next_dozing_++);
  }
  let_one_doze();
}

void JobWatch::let_one_doze() {
  if (watched_.empty()) return;
  if (next_watched_ >= watched_.size()) next_watched_ = 0;
  EngineJob& job = *watched_[next_watched_];
  if (now_ - job.worked_at < kIdle) {
    ++next_watched_;
    return;
  }
  job.worked_at = now_;
  if (job.state != EngineJob::State::running || job.session().anything_in_flight()) return;
  if (job.is_leader()) job.session().set_asleep(true);
  // The trainer sees that it has to ring, or this thread sees what it has submitted.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_work(job)) {
    if (job.is_leader()) end_sleep(job.session());
    return;
  }
  watched_[next_watched_] = watched_.back();
  watched_.pop_back();
  dozing_.push_back(&job);
}

void JobWatch::prepare_wait() {
  sleeps_next_ = true;
  for (EngineJob* job : watched_) {
    if (job->is_leader()) job->session().set_asleep(true);
  }
}

void JobWatch::finish_wait() {
  sleeps_next_ = false;
  for (EngineJob* job : watched_) {
    if (job->is_leader()) end_sleep(job->session());
  }
}

}  // namespace gradcube::dataplane
