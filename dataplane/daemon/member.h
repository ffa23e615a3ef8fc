// What a node has of a job: its trainers, mostly one, with their session, and what the node's
// engines hold of it. A trainer is named by its number among them. Where the server aggregates the
// job's hub and has no trainers of the job (hub_guests.h), there are none, and no lanes.
//
// Ownership: owns the session and its parts at the engines. When the trainers have gone and the
// engines have let go, release() hands both over: packets may still point into the session.
//
// Threads: the control thread. What concerns engines runs on their pollers (Poller::call), and is
// over on all engines of the server when the function returns.
#ifndef GRADCUBE_DATAPLANE_DAEMON_MEMBER_H_
#define GRADCUBE_DATAPLANE_DAEMON_MEMBER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "control/jobs/departures.h"
#include "control/jobs/job_actions.h"
#include "control/jobs/join_request.h"
#include "control/plan/topology.h"
#include "dataplane/daemon/departed_sessions.h"
#include "dataplane/daemon/job_report.h"
#include "dataplane/daemon/member_hub.h"
#include "dataplane/daemon/node_engines.h"
#include "dataplane/daemon/packet_offer.h"
#include "dataplane/daemon/trainer_channel.h"
#include "dataplane/engine/lane_plan.h"

namespace gradcube::dataplane {

class Member {
 public:
  // With its first trainer, of this number. Throws control::SetupError; JoinRefused if the engines
  // cannot run such a session, or have no packet memory for it. plans: one per lane of the
  // request's options. server: in words.
  Member(const control::JoinRequest& request, const std::string& server,
         std::shared_ptr<SessionRegion> region, LanePlans plans, const NodeEngines& engines,
         unsigned local = 0);
  // Without trainers. Throws as the other one does.
  Member(const control::JoinRequest& request, const std::string& server,
         const NodeEngines& engines);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const control::JoinRequest& request() const { return request_; }
  const Session& session() const { return *session_; }
  bool attached() const { return !parts_.empty(); }

  // Trainers ----------------------------------------------------------------

  // Of the job on this server, when all are there.
  unsigned trainers() const { return static_cast<unsigned>(locals_.size()); }
  // Another one, whose place is free, before the job begins. Throws as the constructor does.
  void add(unsigned local, control::TrainerInfo trainer, std::shared_ptr<SessionRegion> region);
  bool has(unsigned local) const { return locals_[local].has_value(); }
  // Nothing if there is none.
  std::optional<unsigned> free_place() const;
  const control::TrainerInfo& trainer(unsigned local) const { return locals_[local]->info; }
  // It is here and has not gone.
  bool stays(unsigned local) const { return has(local) && !locals_[local]->gone; }
  bool any_stays() const;
  void leave(unsigned local);

  // The job has taken this server, with this rank of so many servers.
  void admit(unsigned rank, unsigned size);
  bool admitted() const { return place_.has_value(); }
  // Those that stay and have not been told yet.
  std::vector<unsigned> untold() const;
  // Once: what a trainer gets. The caller closes its doorbell.
  JoinedSession tell(unsigned local);

  // Engines -----------------------------------------------------------------
  // The commands of control/jobs/job_actions.h.

  // With the job's window, which is at most the one that was offered. Throws control::SetupError
  // for another window, and what Engine::prepare() and PacketReservation::commit() throw; then
  // nothing is attached. Where a doorbell cannot be watched it throws too, and detach() is due.
  void attach(const control::JobDescriptor& job, const aggregation::Kernels& kernels);
  void start();
  void hold();
  void halt();
  // From now on the collectives up to the cut end with its code, for the reason that the notice of
  // this number gives; and so does all that is pushed to the job's hub, which is gone.
  void reset(control::Epoch epoch, const control::JobCut& cut, std::uint32_t notice);
  void detach();

  // Departures (control/jobs/departures.h). While it is attached.
  // All that a trainer which has left in order had submitted is taken, and will be counted by
  // submitted(). False: not yet.
  bool take_last(unsigned local);
  void note(const control::Departure& departure);
  // Some that have left and that messages of these trainers wait for, and what ends those.
  std::map<MailPeer, std::uint32_t> deserters(std::size_t most) const;
  void end_deserted(const MailPeer& peer, std::uint32_t notice);
  // By lane, the first collective that a trainer here has submitted and one that has left has not;
  // 0 if there is none, or something that they share has not ended yet. Where some have left.
  std::vector<std::uint64_t> missed(const control::Departures& departures) const;
  // It has a hub, or a trainer has wished for one.
  bool needs_all() const;
  // There is none any more, and cannot be: as refuse_hub(), with the notice of this number.
  void lose_hub(std::int32_t code, const std::string& why, std::uint32_t notice) {
    take_hub_off_engines(code, notice);
    hub_.fail(code, why, notice);
    forget_unread_hub();
  }

  const LanePlans& plans() const { return plans_; }

  // Counts go on over resets: what a reset has failed counts as published and completed, whether or
  // not the trainer has come so far.
  LaneCounts counts() const;
  // What all trainers have submitted themselves, and how much of that has ended.
  LaneCounts submitted() const;
  LaneCounts submitted(unsigned local) const;
  // What any trainer has submitted, or a reset has failed.
  control::LaneNumbers reached() const;
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

  // Hub ---------------------------------------------------------------------

  // A trainer wishes for a hub, or its server needs the job's no more. While it is attached.
  void ask_hub(unsigned local, HubWish wish, const control::Topology& topology);
  // Of a member without trainers: makes what it has of the hub. An answer follows from work_hub(),
  // as if to trainer 0. shape: with its plan.
  void host_hub(HubWish wish, ServerHubShape shape, MemoryQuota::Charge charge);
  // The trainer has wished for one, and was not answered yet.
  bool waits_for_hub(unsigned local) const { return hub_.waits(local); }
  void end_hub(unsigned local, std::uint32_t number);
  // To be called about every 20 ms: answers to trainers. is_whole: as of MemberHub.
  std::vector<HubAnswer> work_hub(const MemberHub::IsWhole& is_whole = nullptr);
  // Its hub cannot be, for what others lack: trainers of this server are told so.
  void refuse_hub(std::int32_t code, const std::string& why) { lose_hub(code, why, 0); }
  // Of the hub, if there is one.
  const std::shared_ptr<const std::string>& hub_table() const { return hub_.table(); }
  // What still runs for hubs that nobody waits for: to be kept until each is_idle(). release()
  // hands over what was not taken.
  std::vector<std::unique_ptr<HubMaking>> take_dropped_hubs() { return hub_.take_dropped(); }
  // All its trainers have gone: its hub is not read any more.
  void forget_hub() {
    if (!hub_is_kept_) hub_.forget();
  }
  // From now on trainers that go keep what they map of it, as their daemon ends.
  void keep_hub() { hub_is_kept_ = true; }
  // What a push of the key waits for, in words: "key ... waits for ...".
  std::string why_pushed(std::uint64_t key) const;
  // Null if there is none.
  const ServerHub* hub() const { return hub_.hub().get(); }

  // Packet memory -----------------------------------------------------------

  // Segments per flow: what was offered for the trainer when it joined, and from attach() on the
  // job's. 0 if the server has no engines.
  unsigned window() const { return window_; }
  std::uint64_t reserved_bytes() const;
  // Gives back the packet memory of a detached job once none of its packets is out. To be called
  // about every 20 ms.
  void give_back_packets();

  // Without engines ---------------------------------------------------------

  // Takes what the trainers have submitted, before their job is complete: kRingEntries at most, so
  // that none of them keeps this thread; the next call goes on. The violation of one, if it has
  // made one: see violator().
  const char* take_submissions();

  // From now on all that has not ended, and all that comes, fails; the notice of this number says
  // why. The engines have let go, or never had it.
  void end(std::uint32_t notice) {
    end_notice_ = notice;
    offer_.reserved.clear();
  }
  bool ended() const { return end_notice_.has_value(); }
  // Fails what has come since. The violation of a trainer, if it has made one.
  const char* fail_submissions();
  const char* violation() const { return session_->violation(); }
  unsigned violator() const { return session_->violator(); }

  // Gives up what packets may still point into. Only when not attached.
  void release(DepartedSessions& departed);

 private:
  void complete(ServerHubShape& shape) const;
  void use_hub(const std::shared_ptr<ServerHub>& hub);
  void take_hub_off(std::int32_t code, const std::string& why, std::uint32_t notice);
  void take_hub_off_engines(std::int32_t code, std::uint32_t notice);
  void forget_unread_hub();

  struct Local {
    control::TrainerInfo info;
    int doorbell = -1;  // the trainer's, until it has been told
    bool gone = false;
  };
  struct Place {
    unsigned rank;
    unsigned size;
  };
  struct Part {
    EngineAt at;
    std::unique_ptr<EngineJob> job;
  };
  friend Poller& poller_of(const Part& part) { return *part.at.poller; }
  template <typename Function>
  void on_engines(const Function& function) const {
    on_each(parts_, [&function](const Part& part) { function(*part.at.engine); });
  }

  template <typename Function>
  void on_leader(const Function& function) const;

  control::JoinRequest request_;
  LanePlans plans_;
  const NodeEngines& engines_;
  const aggregation::Kernels* kernels_ = nullptr;  // since it is attached
  std::unique_ptr<Session> session_;
  PacketOffer offer_;  // until it is attached
  unsigned window_ = 0;
  std::vector<std::optional<Local>> locals_;
  std::optional<Place> place_;
  protocol::JobId job_ = protocol::kNoJob;
  std::vector<Part> parts_;
  // Of engines that have let go. They have packets out.
  std::vector<std::unique_ptr<EngineJob>> detached_;
  LaneCuts cuts_{};  // of the resets so far
  MemberHub hub_;
  bool hub_is_kept_ = false;
  std::optional<std::uint32_t> end_notice_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_MEMBER_H_
