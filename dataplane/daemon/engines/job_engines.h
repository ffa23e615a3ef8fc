// What the engines of one server hold of a job: the packet memory that was offered for it, and then
// its part at each engine. Of what a server's trainers are in, and of hubs that it aggregates for
// others.
//
// Ownership: owns the parts. The session and the plans outlive it. Engines that have let go may
// have packets out: release() hands their parts over.
//
// Threads: the control thread. What concerns engines runs on their pollers (Poller::call), and is
// over on all engines of the server when the function returns.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_JOB_ENGINES_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_JOB_ENGINES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/kernels.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/job_nonce.h"
#include "dataplane/daemon/engines/engine_at.h"
#include "dataplane/daemon/engines/node_engines.h"
#include "dataplane/daemon/engines/packet_offer.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/lane_plan.h"
#include "dataplane/engine/session/session.h"

namespace gradcube::dataplane {

class JobEngines {
 public:
  struct Part {
    EngineAt at;
    std::unique_ptr<EngineJob> job;
  };

  // Offers packet memory. server: in words. Throws control::SetupError where the engines cannot run
  // these lanes in a region of this size; JoinRefused where they have no memory for them.
  JobEngines(const std::string& job, const std::string& server, const LanePlans& plans,
             std::uint64_t region_bytes, const NodeEngines& engines);
  JobEngines(const JobEngines&) = delete;
  JobEngines& operator=(const JobEngines&) = delete;

  const NodeEngines& engines() const { return engines_; }
  // The pollers that the session of a server's engines wakes: null where one runs them all.
  struct Bells {
    std::vector<Doorbell*> listeners;
    Doorbell* leader = nullptr;
  };
  static Bells bells_of(const NodeEngines& engines);

  // With the job's window, which is at most the one that was offered. Throws control::SetupError
  // for another window, and what Engine::prepare() and PacketReservation::commit() throw; then
  // nothing is attached. Where a doorbell cannot be watched, or an engine has no memory, it throws
  // too, and detach() is due. May be called again with the same, whether or not it has thrown, as
  // long as the job has not started.
  void attach(const control::JobDescriptor& job, const control::JobNonce& nonce, Session& session,
              std::uint32_t weight, const aggregation::Kernels& kernels);
  bool attached() const { return !parts_.empty(); }
  protocol::JobId job() const { return job_; }
  const std::vector<Part>& parts() const { return parts_; }
  // Since it is attached.
  const aggregation::Kernels& kernels() const { return *kernels_; }

  // Of collectives, in both directions, since the engines have the job.
  std::uint64_t segments_passed() const;

  void start() { at_engines(&Engine::start); }
  void hold() { at_engines(&Engine::hold); }
  void halt() { at_engines(&Engine::halt); }
  void reset(const LaneCuts& cuts, control::Epoch epoch);
  void detach();

  // Segments per flow: what was offered, and from attach() on the job's. 0 if there are no engines.
  unsigned window() const { return window_; }
  std::uint64_t reserved_bytes() const;
  void drop_offer() { offer_.reserved.clear(); }
  // Gives back the packet memory of detached parts once none of their packets is out. To be called
  // about every 20 ms.
  void give_back_packets();
  // What packets of detached parts may still point from.
  std::vector<std::unique_ptr<EngineJob>> release() { return std::move(detached_); }

  // Calls function(part) of the server's leader engine, on its poller, if it is attached.
  template <typename Function>
  void on_leader(const Function& function) const {
    for (const Part& part : parts_) {
      if (part.job->is_leader()) part.at.poller->call([&] { function(part); });
    }
  }

 private:
  void prepare(const control::JobDescriptor& job, const control::JobNonce& nonce, Session& session,
               std::uint32_t weight, const aggregation::Kernels& kernels);
  void let_go(const Part& part) const;
  friend Poller& poller_of(const Part& part) { return *part.at.poller; }
  void at_engines(void (Engine::*command)(protocol::JobId)) const;

  const LanePlans& plans_;
  const NodeEngines& engines_;
  const aggregation::Kernels* kernels_ = nullptr;
  PacketOffer offer_;  // until it is attached
  unsigned window_ = 0;
  protocol::JobId job_ = protocol::kNoJob;
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<EngineJob>> detached_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_JOB_ENGINES_H_
