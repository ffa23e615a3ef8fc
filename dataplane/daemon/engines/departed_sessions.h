// Sessions whose trainers have gone and whose engines have let go, but whose memory packets may
// still point into: they lie in other servers' queues and windows. Each is kept until the last of
// its packets has ended, and the last thread that works for it. It outlives the nodes, because a
// packet can outlive the node that sent it.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_DEPARTED_SESSIONS_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_DEPARTED_SESSIONS_H_

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/session/session.h"

namespace gradcube::dataplane {

// What runs on threads of its own for something that has gone. Its destructor waits for them:
// destroy it when is_idle().
class UnfinishedWork {
 public:
  virtual ~UnfinishedWork() = default;
  virtual bool is_idle() const = 0;
};

class DepartedSessions {
 public:
  void add(std::unique_ptr<Session> session, std::vector<std::unique_ptr<EngineJob>> jobs,
           std::vector<std::unique_ptr<UnfinishedWork>> works) {
    departed_.push_back({std::move(session), std::move(jobs), std::move(works)});
  }
  // Of no session.
  void add(std::vector<std::unique_ptr<UnfinishedWork>> works) {
    departed_.push_back({nullptr, {}, std::move(works)});
  }

  // Frees those that no packet points into any more.
  void reap() {
    departed_.remove_if([](const Departed& each) {
      return std::ranges::all_of(each.jobs,
                                 [](const auto& job) { return job->references() == 0; }) &&
             std::ranges::all_of(each.works, [](const auto& work) { return work->is_idle(); });
    });
  }

  bool empty() const { return departed_.empty(); }

  // Of their regions, as far as they take memory.
  std::uint64_t resident_bytes() const {
    std::uint64_t bytes = 0;
    for (const Departed& each : departed_) {
      if (each.session != nullptr) bytes += each.session->resident_bytes();
    }
    return bytes;
  }

 private:
  // The jobs refer to the session, so they go first: in a list, which destroys and never moves.
  struct Departed {
    std::unique_ptr<Session> session;
    std::vector<std::unique_ptr<EngineJob>> jobs;
    std::vector<std::unique_ptr<UnfinishedWork>> works;
  };

  std::list<Departed> departed_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_DEPARTED_SESSIONS_H_
