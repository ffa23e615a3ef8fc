// What the agents and the leader of a job tell each other.
//
// A job has one agent on each of its member servers (job_agent.h), and one leader, on the lowest of
// them (job_leader.h). Messages may be lost, doubled and reordered. So each request is repeated
// until it is answered, and every receiver can tell by incarnation, attempt, epoch and phase
// whether a message is stale.
//
//   gathering   Join -> Pending | Refused; Seek -> Elsewhere, if so
//   set-up      Prepare -> Armed(0), then Start(0) -> Started(0)
//   catch up    Disagree -> Ask -> Counts, from the leader to the agents, again and again
//   part        Leave -> Left -> Noted, of a trainer that the job goes on without (departures.h)
//   stop        then, or after a Leave: Hold(e) -> Held(e), again whenever its counts grow
//   reset       Reset(e + 1) -> Armed(e + 1), then Start(e + 1) -> Started(e + 1)
//   end         Abort among all
//   inquiry     Ask -> Counts, among agents, at any time
//
// A server in `armed` takes the frames of the epoch and sends none. Start goes out only when all
// are armed: no frame of an epoch meets an engine that would drop it.
//
// Plain data. Strings are for the user. Servers are those of the cluster; who decodes a message
// (message_codec.h) checks that they and the numbers of lanes are in range. Every field has its
// line in message_fields.h.
#ifndef GRADCUBE_CONTROL_JOBS_JOB_MESSAGES_H_
#define GRADCUBE_CONTROL_JOBS_JOB_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/base/hkdf.h"
#include "control/jobs/job_options.h"
#include "control/jobs/job_owner.h"
#include "control/jobs/join_request.h"
#include "protocol/job_id.h"

namespace gradcube::control {

// Of a daemon: a random number, another after each restart. 0: not known.
using Incarnation = std::uint64_t;
// Which of its daemon's joins an agent serves: from 1. 0 stands for the job's leader.
using Attempt = std::uint64_t;
// Frames carry its low 16 bits.
using Epoch = std::uint32_t;
// One number per lane. Collectives count from 1, so 0 is "none".
using LaneNumbers = std::vector<std::uint64_t>;

// What a server's ports and settings allow. A job has the least of its members', and the key of its
// leader's server.
struct TransportFacts {
  std::uint32_t segment_bytes = 0;
  std::uint32_t window = 0;  // segments per flow
  bool checksums = false;    // demanded of all if one demands them
  KeyId key = 0;             // of the cluster, that those of its frames are made of

  bool operator==(const TransportFacts&) const = default;
};

struct JobMember {
  bcube::ServerId server = 0;
  std::uint32_t rank = 0;
  Incarnation incarnation = 0;
  Attempt attempt = 0;

  bool operator==(const JobMember&) const = default;
};

// What the engines of a job are made from: the same on all servers.
struct JobDescriptor {
  JobId id = protocol::kNoJob;
  std::string name;
  JobOptions options;
  bool ranks_are_wished = false;
  std::vector<JobMember> members;  // by server
  TransportFacts transport;
  Epoch epoch = 0;

  bool operator==(const JobDescriptor&) const = default;
};

// A collective that cannot be done: its trainers disagree on it, or an average overflowed in it.
struct Disagreement {
  // signatures: no server can complete it. overflow: servers that do not need the element that
  // overflowed may complete it, and small later ones of its lane. departure: a trainer that has
  // left has not submitted it, so no server can complete it.
  enum class Cause { signatures, overflow, departure };

  std::uint32_t lane = 0;
  std::uint64_t collective = 0;
  std::int32_t code = 0;
  // overflow, departure: the whole sentence. signatures: only where it was met: "server [1,0],
  // thread 0, step 1"; the leader adds who submitted what.
  std::string text;
  Cause cause = Cause::signatures;

  bool operator==(const Disagreement&) const = default;
};

// How a reset divides the collectives of each lane: those up to `done` have completed on all
// members, those after it up to `failed` fail with this code, submitted yet or not. They fail on
// all members, except that in a lane with an overflow those that have completed on a member stay
// so there. The next one is the first of the new epoch.
struct JobCut {
  LaneNumbers done;
  LaneNumbers failed;
  std::int32_t code = 0;
  std::string text;

  bool operator==(const JobCut&) const = default;
};

struct Join {
  TrainerInfo trainer;
  JobOptions options;
  std::optional<std::uint32_t> rank;
  TransportFacts transport;
  std::uint32_t trainers = 1;  // of the server that have joined so far; only grows

  bool operator==(const Join&) const = default;
};
// With the job's id: the trainer is a member of this job. Without one (kNoJob): not yet, as an old
// job of this name is still ending; the Join is to be repeated.
struct Pending {
  std::string missing;  // who has not joined yet, or that the old job is ending

  bool operator==(const Pending&) const = default;
};
struct Refused {
  std::string text;

  bool operator==(const Refused&) const = default;
};
// From a leader to the daemon of a member server whose trainer has not joined, again and again:
// does a trainer there wait in another job of this name?
struct Seek {
  bool operator==(const Seek&) const = default;
};
// It does: in one that has another leader.
struct Elsewhere {
  TrainerInfo trainer;
  JobOptions options;

  bool operator==(const Elsewhere&) const = default;
};
struct Prepare {
  JobDescriptor job;

  bool operator==(const Prepare&) const = default;
};
struct Armed {
  Epoch epoch = 0;

  bool operator==(const Armed&) const = default;
};
struct Start {
  Epoch epoch = 0;

  bool operator==(const Start&) const = default;
};
// Also the agent's sign of life while the job runs: a server that knows no such job answers it.
struct Started {
  Epoch epoch = 0;

  bool operator==(const Started&) const = default;
};
struct Disagree {
  Epoch epoch = 0;
  Disagreement what;

  bool operator==(const Disagree&) const = default;
};
// Take no more submissions; go on sending and receiving.
struct Hold {
  Epoch epoch = 0;
  std::string why;  // a whole sentence, for trainers that wait meanwhile
  // What cannot be done, if that is the cause: each says what it has submitted as it. A later Hold
  // may ask for an earlier one of the lane.
  std::optional<CollectiveName> asked;

  bool operator==(const Hold&) const = default;
};
struct Held {
  Epoch epoch = 0;
  LaneNumbers published;                    // taken from all its trainers; fixed from now on
  LaneNumbers completed;                    // ended, in order; grows
  std::vector<Disagreement> disagreements;  // at most one per lane, the first
  // As the newest Hold asks; and what was submitted as it: "all_reduce of 9 float32 sum", "nothing
  // yet".
  std::optional<CollectiveName> asked;
  std::string submitted;
  LaneNumbers reached{};  // taken from any of the server's trainers; fixed, too
  // Messages of its trainers to others that it has sent as a whole and whose end it does not know
  // yet: the receiver may have told its trainer already.
  std::uint32_t unanswered = 0;
  // Of collectives, that it has sent and received since the job began; grows. What is on its way
  // moves though nothing ends.
  std::uint64_t segments = 0;

  bool operator==(const Held&) const = default;
};
struct Reset {
  Epoch epoch = 0;  // the new one
  JobCut cut;

  bool operator==(const Reset&) const = default;
};
struct Leave {
  std::string how;  // "the trainer ... left"
  bool died = false;
  std::uint32_t local = 0;  // the trainer's number among those of its server
  // By lane, how many collectives it has submitted in all: the job goes on without it. Nothing: it
  // cannot.
  std::optional<LaneNumbers> submitted{};

  bool operator==(const Leave&) const = default;
};
// A trainer that the job goes on without.
struct Departure {
  bcube::ServerId server = 0;
  std::uint32_t local = 0;
  std::string how;
  LaneNumbers submitted;

  bool operator==(const Departure&) const = default;
};
// Some of the job's departures, in the order in which its leader has heard of them; `first` have
// come before these.
struct Left {
  std::uint32_t first = 0;
  std::vector<Departure> departures;

  bool operator==(const Left&) const = default;
};
// So many departures are known.
struct Noted {
  std::uint32_t departures = 0;

  bool operator==(const Noted&) const = default;
};
// The job is over. Among agents: see abort_exchange.h.
struct Abort {
  std::string why;
  std::vector<bcube::ServerId> gone;     // ascending: whom the sender does not count any more
  std::optional<LaneNumbers> completed;  // the sender's, once its engines stand still
  std::optional<LaneNumbers> common;     // the decision, once there is one
  bool withdrawn = false;                // the sender does not take part in the decision

  bool operator==(const Abort&) const = default;
};
// There is no such agent or leader here, and never will be again.
struct Unknown {
  bool operator==(const Unknown&) const = default;
};
// How far has the receiver's trainer come? From another agent or from the leader.
struct Ask {
  std::uint64_t inquiry = 0;  // as the asking agent numbers them; 0: of the leader

  bool operator==(const Ask&) const = default;
};
struct Counts {
  std::uint64_t inquiry = 0;
  std::int32_t pid = 0;
  LaneNumbers published;
  LaneNumbers completed;

  bool operator==(const Counts&) const = default;
};

// The place in this list is the body's number in the byte form.
using JobBody =
    std::variant<Join, Pending, Refused, Seek, Elsewhere, Prepare, Armed, Start, Started, Disagree,
                 Hold, Held, Reset, Leave, Abort, Unknown, Ask, Counts, Left, Noted>;

// One end of a message: the agent of this attempt, or with attempt 0 the job's leader.
struct JobEnd {
  bcube::ServerId server = 0;
  Incarnation incarnation = 0;
  Attempt attempt = 0;

  bool operator==(const JobEnd&) const = default;
};

struct JobMessage {
  JobEnd from;
  JobEnd to;
  JobId job = protocol::kNoJob;  // kNoJob in Join and while it is not known
  std::string name;
  JobBody body;
  JobOwner owner{};  // of the job

  bool operator==(const JobMessage&) const = default;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_JOB_MESSAGES_H_
