// The control plane of jobs: who is in, when a job starts, and what happens when something goes
// wrong.
//
// A job runs once each of its members has its trainer. A disagreement between trainers is handled
// in this order:
//
//   1. halt      every engine of the job stops taking, sending and receiving for it
//   2. tell      each trainer gets a Notice: the message, and a number by which completions name it
//   3. reset     the engines drop what was in flight and fail all collectives that any trainer
//                has submitted so far, in every lane; a new epoch makes stale frames recognisable.
//                A collective that was in flight may have completed on some trainers before: it
//                fails on the others only
//   4. start     with fresh streams
//
// When a trainer leaves or dies, the job is aborted:
//
//   1. halt and 2. tell, as above
//   3. detach    the engines forget the job. Its flows, their credit and its place among kMaxJobs
//                jobs are free for others
//   4. fail      this thread fails all that the remaining trainers have submitted and will submit,
//                until they leave (reap())
//
// A trainer that goes while nothing of its own is in flight does not end its neighbours' last
// collective: its own engines hold the job, so nothing more of it is taken, until the others have
// finished what they share (their last acknowledgements may be on the way), and only then is the
// job aborted.
//
// Each phase is over on all engines before the next begins (Poller::call waits), so no engine ever
// meets a neighbour that is a phase ahead with frames that it would take.
//
// Threads: the control thread. Ownership: a member owns its session and what the engines hold of
// it; both are destroyed only when the engines have let go and no packet points into the trainer's
// memory (reap()).
#ifndef GRADCUBE_DATAPLANE_DAEMON_JOB_COORDINATOR_H_
#define GRADCUBE_DATAPLANE_DAEMON_JOB_COORDINATOR_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "control/jobs/job_table.h"
#include "dataplane/daemon/cluster.h"
#include "dataplane/daemon/job_report.h"

namespace gradcube::dataplane {

using MemberId = std::uint64_t;

// How the coordinator reaches the world outside: the trainers and the daemon's log. The session
// server implements it. Never blocks.
class MemberChannel {
 public:
  virtual ~MemberChannel() = default;
  virtual void notify(MemberId member, const shared::Notice& notice) = 0;
  // Tells the trainer why and closes its socket.
  virtual void evict(MemberId member, std::int32_t code, const std::string& message) = 0;
  // A line for the log.
  virtual void record(const std::string& line) = 0;
};

// What a trainer asks for. Without lanes: one, with the default algorithm. Without members: every
// server of the cluster.
struct JoinRequest {
  std::string job;
  bcube::ServerId server = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t heap_bytes = 0;
  control::JobOptions options{};
  std::optional<std::uint32_t> rank{};
};

struct JoinedSession {
  MemberId member = 0;
  unsigned rank = 0;
  unsigned size = 0;
  int region_descriptor = -1;  // the session's: the caller passes it on and does not close it
  std::uint64_t region_bytes = 0;
  int trainer_doorbell = -1;  // the caller's: it passes it on and closes it
};

// A trainer may not join: GRADCUBE_E... code and the message for it.
class JoinRefused : public std::runtime_error {
 public:
  JoinRefused(std::int32_t code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  std::int32_t code() const { return code_; }

 private:
  std::int32_t code_;
};

// violation: also of a trainer that aborts its job. Nothing that is shared with it is completed.
enum class Departure { orderly, death, violation };

class JobCoordinator {
 public:
  using SteadyClock = std::chrono::steady_clock;

  // id_seed: makes the job ids of a restarted daemon differ from its former self's.
  JobCoordinator(Cluster& cluster, std::uint32_t id_seed)
      : cluster_(cluster), jobs_(cluster.topology().space(), id_seed) {}
  // When no poller runs any more, and before the cluster: discards all packets under way.
  ~JobCoordinator();
  JobCoordinator(const JobCoordinator&) = delete;
  JobCoordinator& operator=(const JobCoordinator&) = delete;

  // Not owned. Without one (null) nobody is told anything.
  void set_channel(MemberChannel* channel) { channel_ = channel; }

  // Throws JoinRefused (code, message).
  JoinedSession join(const JoinRequest& request);
  // After the trainer has been welcomed: starts the job if it is complete.
  void start_if_complete(MemberId member);
  void leave(MemberId member, Departure departure, const std::string& reason);

  void handle(const EngineEvent& event);

  // Why a collective is not done: who has not joined, who has not submitted, or that all have.
  std::string explain(MemberId member, CollectiveName collective) const;

  // To be called about every 20 ms: aborts jobs whose departed members have drained long
  // enough, fails what trainers of aborted jobs submit, and frees what departed members have left
  // behind once nothing points to it.
  void reap(SteadyClock::time_point now);

  std::vector<JobFacts> facts(SteadyClock::time_point now = SteadyClock::now()) const;
  // To be called about every tenth of a second: notes which jobs wait for a trainer, so that
  // facts() can say since when.
  void note_waits(SteadyClock::time_point now) { waits_.note(facts(now), now); }

  std::uint64_t trainer_bytes() const;  // shared heaps, as far as they take memory
  unsigned trainers(bcube::ServerId server) const;
  std::string job_name(std::uint32_t job) const;

  // The daemon's mapping of a member's region: for a trainer that lives in this process, in
  // simulations and benches.
  std::uint8_t* region_base(MemberId member) const {
    return members_.at(member).session->region().base();
  }

 private:
  struct Part {
    EngineAt at;
    std::unique_ptr<EngineJob> job;
  };
  struct Member {
    MemberId id = 0;
    std::uint32_t job = 0;
    bcube::ServerId server = 0;
    std::uint32_t pid = 0;
    std::unique_ptr<Session> session;
    std::vector<Part> parts;
    bool draining = false;  // its trainer has gone
    bool attached = true;   // to its engines; the trainer of an aborted job is not
  };
  using Members = std::vector<Member*>;
  static constexpr std::array<std::uint64_t, shared::kMaxLanes> kEverything = [] {
    std::array<std::uint64_t, shared::kMaxLanes> all{};
    all.fill(UINT64_MAX);
    return all;
  }();
  // A job that ends as soon as its remaining members have completed `shared` (by lane), or at the
  // deadline.
  struct Drain {
    std::array<std::uint64_t, shared::kMaxLanes> shared = kEverything;
    SteadyClock::time_point deadline = SteadyClock::time_point::max();
    std::string message;
    // All that have gone said goodbye with nothing in flight: the job ends as planned.
    bool orderly = true;
  };

  // What the coordinator itself knows of a job that has members.
  struct Record {
    LanePlans lanes;
    std::uint32_t notices = 0;  // told so far
    // Of the resets so far: what collectives fail with, submitted or not.
    LaneCuts cuts{};
    // Of an aborted job: the notice that says why.
    std::optional<std::uint32_t> abort_notice;
  };

  const Members& members_of(std::uint32_t job) const;  // by server
  std::vector<JobFacts::Trainer> trainers_of(std::uint32_t job) const;
  std::vector<EngineAt> engines_of(std::uint32_t job) const;
  void on_engines(std::uint32_t job, const std::function<void(Engine&)>& function) const;
  Member& add(Member member);
  void depart(MemberId member);
  void arm(const control::Job& job);
  void hold_the_draining(std::uint32_t job) const;
  void drain(Member& member, Departure departure, const std::string& message);
  void fail_in_flight(std::uint32_t job, std::int32_t code, const std::string& message);
  void abort(std::uint32_t job, const Drain& drain);
  std::string awaited(const Member& member) const;
  void fail_submissions();
  void fail_submissions(Session& session, const Record& record);
  void evict(Member& member);
  void attach(Member& member);
  void detach(const Members& members);
  bool nothing_in_flight(Member& member);
  bool shared_work_is_done(std::uint32_t job, const Drain& drain) const;
  bool is_aborted(std::uint32_t job) const;
  const bcube::AddressSpace& space() const { return cluster_.topology().space(); }
  std::string disagreement(std::uint32_t job, const EngineEvent& event) const;
  void notify(const Member& member, const shared::Notice& notice);
  void record(const std::string& line);

  Cluster& cluster_;
  MemberChannel* channel_ = nullptr;
  control::JobTable jobs_;
  std::map<MemberId, Member> members_;
  std::map<std::uint32_t, Members> members_by_job_;
  std::vector<Member> departed_;
  std::map<std::uint32_t, Drain> drains_;    // by job
  std::map<std::uint32_t, Record> records_;  // by job
  WaitTimes waits_;
  MemberId next_member_ = 1;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_JOB_COORDINATOR_H_
