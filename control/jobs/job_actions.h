// What goes into the job control of a server and comes out of it, beside messages: events of the
// local trainer and engines, commands to the local engines, notices to the local trainer, timing.
//
// Events are reliable and in order. A command is carried out on all engines of the server that
// have a part of the job; then the named event is handed in. A command that is not carried out in
// time ends the job: the others' deadlines see to it.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_ACTIONS_H_
#define GRADCUBE_CONTROL_JOBS_JOB_ACTIONS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/jobs/job_messages.h"

namespace gradcube::control {

// Since any fixed moment; the same clock in all calls.
using Instant = std::chrono::microseconds;

// Of two, as far as there are any.
inline std::optional<Instant> earlier(std::optional<Instant> one, std::optional<Instant> other) {
  return one.has_value() && other.has_value() ? std::min(one, other) : std::max(one, other);
}

struct JobTiming {
  Instant repeat = std::chrono::milliseconds(20);  // of a request without an answer
  // Of signs of life, also of what a job that stops still completes. An unanswered Join is repeated
  // as fast as any request, later this often.
  Instant ping = std::chrono::milliseconds(500);
  // For all members to answer; where engines are prepared, reset or started, for the next one to.
  Instant phase = std::chrono::seconds(2);
  // For a trainer to leave another job of the same name, with other members.
  Instant elsewhere = std::chrono::seconds(2);
  // For all trainers to submit what comes before a collective that cannot be done.
  Instant catch_up = std::chrono::seconds(2);
  // For all to complete what all have submitted: after a disagreement for the next collective to
  // end or the next of its segments to pass, after a trainer's leaving for all; and after a
  // trainer's death.
  Instant run_on = std::chrono::seconds(10);
  Instant run_on_after_death = std::chrono::milliseconds(500);
  Instant decide = std::chrono::seconds(2);         // to hear of a survivor; and once more to agree
  Instant linger = std::chrono::seconds(2);         // to tell others of a decision
  Instant answer = std::chrono::milliseconds(200);  // of all members, to an inquiry
};

namespace event {
// The engines are attached and armed (after command::Prepare or Reset).
struct EnginesArmed {};
// The engines take no more submissions (after command::Hold); and, from then on, whenever their
// counts have grown. `published` is what they have taken, `completed` what has ended, in order.
// Both only grow, over resets too. Where a server has several trainers, `published` is what has
// been taken from all of them, and `reached` what has been taken from any. `asked` is what the
// newest command::Hold names, `submitted` what this server's trainer has submitted as it.
struct EnginesHeld {
  LaneNumbers published;
  LaneNumbers completed;
  std::optional<CollectiveName> asked;
  std::string submitted;
  LaneNumbers reached{};  // none: as `published`
  // As Held says: messages between trainers, and what has passed of collectives.
  std::uint32_t unanswered = 0;
  std::uint64_t segments = 0;
};
// The engines stand still (after command::Halt): `completed` is final.
struct EnginesHalted {
  LaneNumbers completed;
};
using Disagreed = Disagree;
// One more of the server's trainers is there.
struct TrainerJoined {};
// A trainer left or died; what it has submitted can still be done. `how` is a whole sentence.
// others_stay: of the same server. local, submitted: as Leave says. settled: what it has submitted
// in all is known, or does not matter; until then it has gone, and this comes again when the job
// runs.
struct TrainerLeft {
  std::string how;
  bool died = false;
  bool others_stay = false;
  std::uint32_t local = 0;
  std::optional<LaneNumbers> submitted{};
  bool settled = true;
};
// A trainer aborted its job, or was evicted: nothing of it may be used any more.
struct TrainerAborted {
  std::string how;
  bool others_stay = false;
};
// The trainer asks why this collective is not done. Only its newest inquiry is answered, by one
// notice::Report.
struct Asked {
  std::uint64_t inquiry = 0;
  CollectiveName collective;
};
// After command::Count. pid: of the trainer that has come least far; 0: of the only one. Of no
// inquiry.
using Counted = Counts;
}  // namespace event
using JobEvent = std::variant<event::EnginesArmed, event::EnginesHeld, event::EnginesHalted,
                              event::Disagreed, event::TrainerJoined, event::TrainerLeft,
                              event::TrainerAborted, event::Asked, event::Counted>;

namespace command {
// Attach engines, armed in the descriptor's epoch. -> EnginesArmed
using control::Prepare;
// Take submissions and send. No answer.
using control::Start;
// Take no more submissions; go on sending and receiving. Comes again, to ask for another collective
// or how far the engines have come. -> EnginesHeld, again and again
struct Hold {
  std::optional<CollectiveName> asked;  // say what the trainer has submitted as this one
};
// Stop. Nothing may complete after the answer. -> EnginesHalted
struct Halt {};
// Drop what is in flight, fail what the cut says, be armed in the new epoch. -> EnginesArmed
using control::Reset;
// A trainer has left, and the job goes on: from now on what needs it fails (departures.h). Its own
// server is told, too. No answer.
struct Note {
  Departure departure;
};
// Forget the job. No answer.
struct Detach {};
// How far has the trainer come? Also without engines, before Prepare: then all counts are 0, or
// missing. -> Counted
struct Count {};
}  // namespace command
using JobCommand = std::variant<command::Prepare, command::Start, command::Hold, command::Halt,
                                command::Reset, command::Note, command::Detach, command::Count>;

// How far a member has come, as it says itself.
struct MemberStanding {
  bcube::ServerId server = 0;
  std::int32_t pid = 0;   // 0 if it has not answered
  bool answered = false;  // within the time
  LaneNumbers published;  // one per lane in any case
  LaneNumbers completed;
};

namespace notice {
// The leader has answered: the server is a member, with this rank of so many servers. Comes once,
// before any other notice but Refused and Ended.
struct Joined {
  JobId job = protocol::kNoJob;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
};
using control::Refused;
// Collectives failed; the job goes on. Comes with command::Reset, behind it.
struct Failed {
  JobCut cut;
};
// The job is over: all that has not ended fails. Of each lane, the collectives up to `common`
// ended alike on all survivors; nothing if that could not be found out.
struct Ended {
  std::string why;
  std::optional<LaneNumbers> common;
};
// The answer to event::Asked. If `missing` is not empty, it says why the collective cannot be done
// yet, or any more, and nobody's standing is known.
struct Report {
  std::uint64_t inquiry = 0;
  CollectiveName collective;
  std::string missing;
  std::vector<MemberStanding> members;  // by server, this one among them
};
}  // namespace notice
using JobNotice =
    std::variant<notice::Joined, notice::Refused, notice::Failed, notice::Ended, notice::Report>;

struct ToEngines {
  Attempt attempt = 0;
  JobCommand command;
};
struct ToTrainer {
  Attempt attempt = 0;
  JobNotice notice;
};
using JobAction = std::variant<JobMessage, ToEngines, ToTrainer>;
using JobActions = std::vector<JobAction>;

// A turn of a machine: the time, and where it puts what is to be done.
struct Turn {
  Instant now;
  JobActions& out;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_ACTIONS_H_
