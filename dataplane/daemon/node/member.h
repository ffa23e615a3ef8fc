// What a node has of a job: its trainers, mostly one, with their session, and what the node's
// engines hold of it (engines/job_engines.h). A trainer is named by its number among them.
//
// Ownership: owns the session, its parts at the engines, and the job's hub here. When the trainers
// have gone and the engines have let go, release() hands both over: packets may still point into
// the session.
//
// Threads: the control thread. What concerns engines runs on their pollers (Poller::call), and is
// over on all engines of the server when the function returns.
#ifndef GRADCUBE_DATAPLANE_DAEMON_NODE_MEMBER_H_
#define GRADCUBE_DATAPLANE_DAEMON_NODE_MEMBER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "control/base/descriptor.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/join_request.h"
#include "dataplane/daemon/engines/departed_sessions.h"
#include "dataplane/daemon/engines/job_engines.h"
#include "dataplane/daemon/engines/node_engines.h"
#include "dataplane/daemon/hub/job_hub.h"
#include "dataplane/daemon/node/job_report.h"
#include "dataplane/daemon/trainers/trainer_channel.h"
#include "dataplane/engine/lane_plan.h"

namespace gradcube::dataplane {

// How a trainer has gone. reason: of a violation, as of Node::leave().
struct Farewell {
  Departure departure{};
  std::string reason;
};

class Member {
 public:
  // With its first trainer, of this number. Throws control::SetupError; JoinRefused if the engines
  // cannot run such a session, or have no packet memory for it. plans: one per lane of the
  // request's options. server: in words.
  Member(const control::JoinRequest& request, const std::string& server,
         std::shared_ptr<SessionRegion> region, LanePlans plans, const NodeEngines& engines,
         unsigned local = 0);
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const control::JoinRequest& request() const { return request_; }
  const Session& session() const { return *session_; }
  bool attached() const { return engines_.attached(); }

  // Trainers ----------------------------------------------------------------

  // Of the job on this server, when all are there.
  unsigned trainers() const { return static_cast<unsigned>(locals_.size()); }
  // Another one, whose place is free, before the job begins. Throws as the constructor does; then
  // the place is still free.
  void add(unsigned local, control::TrainerInfo trainer, std::shared_ptr<SessionRegion> region);
  bool has(unsigned local) const { return locals_[local].has_value(); }
  // Nothing if there is none.
  std::optional<unsigned> free_place() const;
  const control::TrainerInfo& trainer(unsigned local) const { return locals_[local]->info; }
  // It is here and has not gone.
  bool stays(unsigned local) const { return has(local) && !locals_[local]->gone; }
  bool any_stays() const;
  // farewell: what the job has to be told of it, until told_of(). Throws nothing.
  void leave(unsigned local, std::optional<Farewell> farewell = {});
  const Farewell* farewell(unsigned local) const {
    return has(local) && locals_[local]->farewell.has_value() ? &*locals_[local]->farewell
                                                              : nullptr;
  }
  void told_of(unsigned local) { locals_[local]->farewell.reset(); }

  // The job has taken this server, with this rank of so many servers.
  void admit(unsigned rank, unsigned size);
  bool admitted() const { return place_.has_value(); }
  // Those that stay and have not been told yet.
  std::vector<unsigned> untold() const;
  // Once: what a trainer gets. The caller closes its doorbell.
  JoinedSession tell(unsigned local);

  // Engines -----------------------------------------------------------------
  // The commands of control/jobs/job_actions.h.

  // As JobEngines::attach().
  void attach(const control::JobDescriptor& job, const aggregation::Kernels& kernels) {
    engines_.attach(job, control::job_nonce(job), *session_, request_.options.weight, kernels);
  }
  void start() { engines_.start(); }
  void hold() { engines_.hold(); }
  void halt() { engines_.halt(); }
  // From now on the collectives up to the cut end with its code, for the reason that the notice of
  // this number gives; and so does all that is pushed to the job's hub, which is gone.
  void reset(control::Epoch epoch, const control::JobCut& cut, std::uint32_t notice);
  void detach() { engines_.detach(); }

  // Departures (control/jobs/departures.h). While it is attached.
  // All that a trainer which has left in order had submitted is taken, and will be counted by
  // submitted(). False: not yet.
  bool take_last(unsigned local);
  void note(const control::Departure& departure);
  // Some that have left and that messages of these trainers wait for, and what ends those.
  std::map<MailPeer, std::uint32_t> deserters(std::size_t most) const;
  void end_deserted(const MailPeer& peer, std::uint32_t notice);
  const LanePlans& plans() const { return plans_; }

  // Counts go on over resets: what a reset has failed counts as published and completed, whether or
  // not the trainer has come so far.
  LaneCounts counts() const;
  // What all trainers have submitted themselves, and how much of that has ended.
  LaneCounts submitted() const;
  LaneCounts submitted(unsigned local) const;
  // What any trainer has submitted, or a reset has failed.
  control::LaneNumbers reached() const;
  // Of collectives, in both directions. Waits for the pollers.
  std::uint64_t segments_passed() const { return engines_.segments_passed(); }
  // Messages of these trainers that were sent as a whole and whose end is not known.
  std::uint32_t unanswered() const { return session_->unanswered(); }
  // Who has submitted least.
  unsigned latest() const;
  // Of collectives and pushes: the job is aborted if it ends now. A message that ends with it
  // concerns its two trainers, who are told.
  bool anything_outstanding() const;
  // Of what a trainer asked for as this collective; nothing if it has not, or if its place has been
  // used again.
  std::optional<CollectiveRequest> submitted_as(control::CollectiveName collective,
                                                unsigned local) const;

  // The job's hub here, which node_hubs.cc works on.
  JobHub& hub() { return hub_; }
  const JobHub& hub() const { return hub_; }
  // What a push of the key waits for, in words: "key ... waits for ...".
  std::string why_pushed(std::uint64_t key) const;

  // Packet memory -----------------------------------------------------------

  unsigned window() const { return engines_.window(); }
  std::uint64_t reserved_bytes() const { return engines_.reserved_bytes(); }
  // To be called about every 20 ms.
  void give_back_packets() { engines_.give_back_packets(); }

  // Without engines ---------------------------------------------------------

  // Takes what the trainers have submitted, before their job is complete: kRingEntries at most, so
  // that none of them keeps this thread; the next call goes on. The violation of one, if it has
  // made one: see violator().
  const char* take_submissions();

  // From now on all that has not ended, and all that comes, fails; the notice of this number says
  // why. The engines have let go, or never had it.
  void end(std::uint32_t notice) {
    end_notice_ = notice;
    engines_.drop_offer();
  }
  bool ended() const { return end_notice_.has_value(); }
  // Fails what has come since. The violation of a trainer, if it has made one.
  const char* fail_submissions();
  const char* violation() const { return session_->violation(); }
  unsigned violator() const { return session_->violator(); }

  // Gives up what packets may still point into. Only when not attached.
  void release(DepartedSessions& departed);

 private:
  struct Local {
    control::TrainerInfo info;
    control::Descriptor doorbell;  // the trainer's, until it has been told
    bool gone = false;
    std::optional<Farewell> farewell{};
  };
  struct Place {
    unsigned rank;
    unsigned size;
  };

  control::JoinRequest request_;
  LanePlans plans_;
  std::vector<std::optional<Local>> locals_;
  std::unique_ptr<Session> session_;
  JobEngines engines_;
  std::optional<Place> place_;
  LaneCuts cuts_{};  // of the resets so far
  JobHub hub_;
  std::optional<std::uint32_t> end_notice_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_NODE_MEMBER_H_
