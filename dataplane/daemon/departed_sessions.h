// Sessions whose trainers have gone and whose engines have let go, but whose memory packets may
// still point into: they lie in other servers' queues and windows. Each is kept until the last of
// its packets has ended, and the last thread that makes a hub for it. It outlives the nodes,
// because a packet can outlive the node that sent it.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_DEPARTED_SESSIONS_H_
#define GRADCUBE_DATAPLANE_DAEMON_DEPARTED_SESSIONS_H_

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/daemon/hub_making.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/session.h"

namespace gradcube::dataplane {

class DepartedSessions {
 public:
  // makings: of hubs that nobody waits for.
  void add(std::unique_ptr<Session> session, std::vector<std::unique_ptr<EngineJob>> jobs,
           std::vector<std::unique_ptr<HubMaking>> makings) {
    departed_.push_back({std::move(session), std::move(jobs), std::move(makings)});
  }
  // Of no session.
  void add(std::vector<std::unique_ptr<HubMaking>> makings) {
    departed_.push_back({nullptr, {}, std::move(makings)});
  }

  // Frees those that no packet points into any more.
  void reap() {
    departed_.remove_if([](const Departed& each) {
      return std::all_of(each.jobs.begin(), each.jobs.end(),
                         [](const auto& job) { return job->references() == 0; }) &&
             std::all_of(each.makings.begin(), each.makings.end(),
                         [](const auto& making) { return making->is_idle(); });
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
    std::vector<std::unique_ptr<HubMaking>> makings;
  };

  std::list<Departed> departed_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_DEPARTED_SESSIONS_H_
