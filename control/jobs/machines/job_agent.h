// A job on one of its servers: between the trainer, the server's engines and the job's leader.
//
// Its phases, in order, and the request that ends each:
//
//   joining     Prepare
//   preparing   (engines attached)       of epoch 0
//   armed       Start                    frames of the epoch are taken, none sent
//   running     Hold
//   holding     (engines hold)           no more is taken from the trainer
//   held        Reset -> resetting -> armed in the next epoch
//   aborting    the survivors agree (abort_exchange.h); from any phase after joining
//   ended       tells others the decision, then is over
//
// The trainer is told that it has joined with the leader's first answer, in `joining` or with
// Prepare. It may ask why a collective is not done: at most one inquiry is open.
//
// A request of a phase that is past is answered again; one of a phase to come is ignored, and comes
// again. What a request asks of others is ordered before the phase changes: where there is no
// memory for that, it changes nothing and comes again. A phase that waits for the leader has a
// deadline, after which the agent ends the job and names the leader's server. A server that is gone
// ends the job too.
//
// Single-threaded, no I/O, no clock: time, messages and events are handed in, actions come out.
#ifndef GRADCUBE_CONTROL_JOBS_MACHINES_JOB_AGENT_H_
#define GRADCUBE_CONTROL_JOBS_MACHINES_JOB_AGENT_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/jobs/job_actions.h"
#include "control/jobs/job_messages.h"
#include "control/jobs/machines/abort_exchange.h"

namespace gradcube::control {

class JobAgent {
 public:
  enum class Phase {
    joining,
    preparing,
    armed,
    running,
    holding,
    held,
    resetting,
    aborting,
    ended,
    over
  };

  // `self.attempt` is the agent's own. Sends its Join with the first on_time().
  JobAgent(JobEnd self, const JoinRequest& request, TransportFacts transport,
           const bcube::AddressSpace& space, const JobTiming& timing, Instant now);

  // To this attempt. Only its job's leader and, once it was prepared, the other agents are heeded.
  void on_message(const JobMessage& message, Turn turn);
  void on_event(const JobEvent& event, Turn turn);
  // `why` is a whole sentence. Also of a server that is there with another incarnation.
  void on_server_gone(bcube::ServerId server, const std::string& why, Turn turn);
  void on_time(Turn turn);
  // When on_time() has something to do; nothing when the agent is over.
  std::optional<Instant> deadline() const;

  bool over() const { return phase_ == Phase::over; }
  // The job ends in good order: its leader has let all complete what they share.
  bool ends_in_order() const { return leader_tells_; }
  bool is_ending() const { return phase_ >= Phase::aborting; }
  // After a failure or a trainer's leaving, until it is armed again or the job ends.
  bool stopping() const {
    return phase_ == Phase::holding || phase_ == Phase::held || phase_ == Phase::resetting;
  }
  Phase phase() const { return phase_; }
  // One of the server's trainers left, died, aborted or was evicted: others may join the same job
  // name on this server.
  bool trainer_gone() const { return trainer_gone_; }
  // The leader has answered that the trainer is a member: it may be welcomed.
  bool admitted() const { return job_ != protocol::kNoJob; }
  // What its next Join says, where the job has not been prepared.
  void set_key(KeyId key) { transport_.key = key; }
  Epoch epoch() const { return epoch_; }
  // As the leader named it; kNoJob before.
  JobId job() const { return job_; }
  const std::string& name() const { return request_.name; }
  const JobOwner& owner() const { return request_.owner; }
  const TrainerInfo& trainer() const { return request_.trainer; }
  const JobOptions& options() const { return request_.options; }
  // Whether the agent has dealt with another incarnation of the server than this.
  bool counts_on_another(bcube::ServerId server, Incarnation incarnation) const;
  const std::string& missing() const { return missing_; }
  // Of the end, or of the stop while stopping().
  const std::string& why() const { return why_; }
  const AbortExchange& exchange() const { return exchange_; }
  const std::vector<bcube::ServerId>& servers() const { return request_.options.members; }
  bcube::ServerId leader_server() const { return request_.options.members.front(); }
  // Null before the job was prepared, or if the server is no member.
  const JobMember* member(bcube::ServerId server) const;

 private:
  void handle(const JobMessage& message, const Pending& pending, Turn turn);
  void handle(const JobMessage& message, const Refused& refused, Turn turn);
  void handle(const JobMessage& message, const Prepare& prepare, Turn turn);
  void handle(const JobMessage& message, const control::Start& start, Turn turn);
  void handle(const JobMessage& message, const Hold& hold, Turn turn);
  void handle(const JobMessage& message, const control::Reset& reset, Turn turn);
  void handle(const JobMessage& message, const Abort& abort, Turn turn);
  void handle(const JobMessage& message, const Unknown& unknown, Turn turn);
  void handle(const JobMessage& message, const Ask& ask, Turn turn);
  void handle(const JobMessage& message, const Counts& counts, Turn turn);
  void handle(const JobMessage& message, const Left& left, Turn turn);
  template <typename NotForAgents>
  void handle(const JobMessage&, const NotForAgents&, Turn) {}

  void on(const event::EnginesArmed& armed, Turn turn);
  void on(const event::EnginesHeld& counts, Turn turn);
  void on(const event::EnginesHalted& halted, Turn turn);
  void on(const event::Disagreed& disagreed, Turn turn);
  void on(const event::TrainerJoined& joined, Turn turn);
  void on(const event::TrainerLeft& left, Turn turn);
  void on(const event::TrainerAborted& aborted, Turn turn);
  void on(const event::Asked& asked, Turn turn);
  void on(const event::Counted& counted, Turn turn);

  bool is_heeded(const JobMessage& message) const;
  bool asks_anew(const Hold& hold) const;
  void tell_leaving(JobActions& out) const;
  void admit(JobId job, JobActions& out);
  std::string ending_text() const;
  std::string stopping_text() const;
  void ask_members(JobActions& out);
  void count(JobActions& out);
  void take_counts(bcube::ServerId server, const Counts& counts, Turn turn);
  void report(const std::string& missing, JobActions& out);
  void pursue_inquiry(Turn turn);
  bool is_what_was_asked_for(const JobDescriptor& job) const;
  void enter(Phase phase, Instant now);
  void leave_alone(Turn turn);
  void begin_abort(const std::string& why, Turn turn);
  void end_if_decided(Turn turn);
  void end(std::optional<LaneNumbers> common, Turn turn);
  void miss_deadline(Turn turn);
  void repeat(JobActions& out) const;
  void tell_abort(JobActions& out) const;
  Instant interval() const;
  Instant longest_stop() const { return 2 * timing_.phase + timing_.run_on; }
  Held held() const;
  void send(JobEnd to, JobBody body, JobActions& out) const;
  void answer(JobBody body, JobActions& out) const { send(leader_, std::move(body), out); }
  void order(JobCommand command, JobActions& out) const;
  void tell(JobNotice notice, JobActions& out) const;

  JobEnd self_;
  JoinRequest request_;
  TransportFacts transport_;
  bcube::AddressSpace space_;
  JobTiming timing_;
  JobEnd leader_;
  JobId job_ = protocol::kNoJob;
  JobDescriptor descriptor_;  // once it was prepared
  Phase phase_ = Phase::joining;
  Epoch epoch_ = 0;
  std::optional<Instant> phase_deadline_;
  Instant next_repeat_;
  unsigned decide_rounds_ = 0;
  std::string missing_;  // as the leader last said
  // How trainers of this server have gone, until the leader has said so.
  struct Leaving {
    Leave leave;
    bool settled = true;
  };
  std::vector<Leaving> leaving_;
  std::uint32_t departures_ = 0;  // of the job, that are known
  std::uint32_t trainers_ = 1;    // of this server, that have joined
  bool trainer_gone_ = false;
  bool deserted_ = false;  // the last one has gone, too: nobody is left to be told anything
  bool aborted_ = false;   // while it joined: nothing of it may be used if its job begins
  std::optional<CollectiveName> asked_;  // by the Hold of this stop
  event::EnginesHeld counts_;
  std::map<std::uint32_t, Disagreement> disagreements_;  // of this epoch, by lane
  AbortExchange exchange_;
  bool leader_tells_ = false;  // its decision to all members
  std::string why_;
  // A trainer's question why a collective is not done. Among members, all others are asked how far
  // they have come, again and again, and this server's own counts are taken: the report has what is
  // known when all have answered, or at the deadline. Before that the job gathers: the leader's
  // next answer says who is missing.
  struct Inquiry {
    notice::Report report;  // its members once they are known
    Instant deadline;
  };
  std::optional<Inquiry> inquiry_;
  Instant next_inquiry_{};
  bool counting_ = false;  // command::Count is out
  // Their newest Ask, while it counts.
  std::map<std::pair<bcube::ServerId, Attempt>, JobMessage> askers_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MACHINES_JOB_AGENT_H_
