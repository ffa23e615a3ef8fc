// One server of the cluster: its engines, its trainers, its neighbours, and its part in the control
// of jobs. Other nodes are reached by messages alone, whether they live in this
// process or not.
//
// What a node does is decided by two machines without I/O: control::JobNode (who is in a job, when
// it starts, stops, resets and ends) and control::Greetings (which neighbours are alive). The node
// hands them time, messages, and events of its engines and trainers, and carries out what they ask
// for: messages, commands to the engines, notices to trainers. Nothing is carried out within the
// call that caused it, but in work(); so a caller never meets a node halfway, and never itself.
//
// A trainer that joins is admitted when its job's leader has answered (TrainerChannel::admit); its
// engines get it when all trainers are there. When its job has ended, this thread fails all that
// the trainer has submitted and will submit, until it leaves. When the trainer has gone, its
// session stays until the engines have let go and no packet points into it (departed_sessions.h).
//
// Errors: a trainer's behaviour ends its own session and its own job, with a sentence for everyone
// concerned. Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_NODE_NODE_H_
#define GRADCUBE_DATAPLANE_DAEMON_NODE_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/jobs/departures.h"
#include "control/jobs/greetings.h"
#include "control/jobs/hub/hub_caller.h"
#include "control/jobs/introductions.h"
#include "control/jobs/machines/job_node.h"
#include "control/jobs/wait_cause.h"
#include "control/settings/server_roles.h"
#include "dataplane/daemon/engines/job_plans.h"
#include "dataplane/daemon/engines/node_engines.h"
#include "dataplane/daemon/hub/aggregated_hubs.h"
#include "dataplane/daemon/messages/message_courier.h"
#include "dataplane/daemon/node/job_report.h"
#include "dataplane/daemon/node/member.h"
#include "dataplane/daemon/trainers/trainer_channel.h"

namespace gradcube::dataplane {

// Asked between two steps of the control thread: false leaves the rest for another round.
using MayGoOn = std::function<bool()>;

struct NodeTiming {
  control::JobTiming jobs;
  control::GreetingTiming greetings;
  std::launch hub_threads = std::launch::async;  // as of HubWish
};

// What the nodes of a process share: it outlives them. The channels may change at any time; all
// else that others set is there before the first node.
struct NodeSurroundings : HubSurroundings {
  NodeTiming timing;
  // Between these nodes and to others, in the order of sending.
  std::deque<control::NodeMessage> messages{};
  // For tests: whether it has taken a message out of their way. Null: none.
  std::function<bool(const control::NodeMessage&, control::Instant)> diverts{};
  PlanShelf plans{};
  TrainerChannel* channel = nullptr;  // null: nobody is told anything
  // Who asks and answers for statuses gets each StatusAsk and StatusPart. Null: nobody answers.
  std::function<void(const control::NodeMessage&, control::Instant)> status{};
  // The servers whose nodes live in this process. They fall silent only together, so they need not
  // greet each other: they do, as nodes of different processes, in simulations.
  std::set<bcube::ServerId> here{};
  bool greet_each_other = true;
  control::Aggregators aggregators{};  // the servers that take no trainers
  // Jobs whose abort is in the log: all nodes of a process learn of it.
  std::set<protocol::JobId> logged{};
  MessageFrames frames{};         // to nodes of other processes; without a pool there are none
  unsigned servers_per_core = 1;  // all over the cluster: what `auto` alone goes by
  std::uint64_t secret = 0;       // nobody on another host can guess it; by default tests can
  unsigned jobs_per_user = control::kMaxJobs;  // on each server; they are shared as hubs are
  // Halts a job at all nodes of this process where it is in an earlier epoch than this; null where
  // their frames are copies.
  std::function<void(protocol::JobId, control::Epoch)> halt_everywhere{};
  // Of a server whose node lives in this process: what its ports hear and should not, in words.
  // Takes its pollers' time. Null, or empty: nothing.
  std::function<std::string(bcube::ServerId)> ports_say{};
  std::function<bool(bcube::ServerId)> cut_off{};  // the same: none of its links works
};

class Node {
 public:
  // incarnation: not that of an earlier node of this server, and not 0.
  Node(bcube::ServerId server, control::Incarnation incarnation, NodeSurroundings& around,
       std::unique_ptr<NodeEngines> engines);
  // Its trainers' sessions go; nobody is told.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  bcube::ServerId server() const { return server_; }
  NodeEngines& engines() { return *engines_; }
  const NodeEngines& engines() const { return *engines_; }

  // Throws JoinRefused; control::SetupError. Otherwise the channel's admit() or refuse() follows.
  TrainerId join(const TrainerRequest& request, control::Instant now);
  // Of a trainer that has gone. reason: completes "the trainer of job ... ", of a violation. Said
  // once: it has gone also where this throws as there is no memory to tell others of it, and the
  // next look()s try again.
  void leave(TrainerId trainer, Departure departure, std::string reason, control::Instant now);
  // Why is this collective of the trainer not done? A report about `request` follows, on the
  // channel, within JobTiming::answer.
  void inquire(TrainerId trainer, std::uint64_t request, control::CollectiveName collective,
               control::Instant now);

  // A trainer wishes for a hub: an answer follows, on the channel. False: no trainer of this
  // version says such a thing. end_hub(): its server needs the job's hub no more.
  bool ask_hub(TrainerId trainer, const shared::MakeHub& wish);
  void end_hub(TrainerId trainer, std::uint32_t number);
  // As of HubLifetime::read_by().
  std::shared_ptr<ServerHub> hub_read_by(TrainerId trainer);

  void on_event(const EngineEvent& event, control::Instant now);
  void on_message(const control::NodeMessage& message, control::Instant now);
  // Sends it to the node of another process. It leaves with the next send_carried().
  void carry(const control::NodeMessage& message);
  // Takes what nodes of other processes have sent, an inbox full at most. Whether there was
  // something.
  bool take_messages(control::Instant now);
  // Sends what carry() has gathered.
  void send_carried();
  // What is due: greetings; and of jobs, repetitions and deadlines. To be called at deadline() or
  // soon after; of jobs when nothing is left to be done.
  void greet_on_time(control::Instant now);
  void on_time(control::Instant now);
  std::optional<control::Instant> deadline() const;

  // Carries out what is to be done, as long as it may go on. Whether there was something. Where it
  // throws std::bad_alloc, the next call goes on with what there was no memory for.
  bool work(control::Instant now, const MayGoOn& may_go_on);
  // Takes what trainers submit whose jobs have not begun, fails what those of ended jobs submit,
  // closes the sessions whose memory has faulted, goes on with hubs of other servers, and notes how
  // far jobs have come. To be called about every 20 ms.
  void look(control::Instant now);

  // Goes on with the hubs that its trainers have asked for. To be called as often.
  void answer_hubs(control::Instant now);

  // The cluster's key by which jobs begin from now on, those whose trainers wait among them.
  void set_key(control::KeyId key) { jobs_.set_key(key); }
  // It has nothing of any job.
  bool idle() const { return groups_.empty() && aggregated_.empty() && jobs_.idle(); }
  // The node's engines stand still for this job, and for its hub, until the job is reset or ends;
  // but not if the job has come to this epoch.
  void halt(protocol::JobId job, control::Epoch epoch);
  // What its trainers do, for `status`: of trainers that have not left.
  std::vector<MemberFacts> facts() const;
  // The hubs that it aggregates for jobs of other servers, for `status`.
  std::vector<HubFacts> hubs() const { return aggregated_.facts(); }
  unsigned trainers() const;
  // Of messages of other processes, by reason.
  FrameDrops dropped_messages() const {
    return courier_ == nullptr ? FrameDrops{} : courier_->dropped();
  }
  // Whether it still has a trainer of this job, what one has left behind, or the job's hub.
  bool knows(protocol::JobId job) const;
  std::uint64_t trainer_bytes() const;  // shared heaps, as far as they take memory
  // The daemon's mapping of a trainer's region: for a trainer that lives in this process, in
  // simulations and benches.
  std::uint8_t* region_base(TrainerId trainer) const;

 private:
  // A job of this server, with its trainers here.
  struct JobGroup {
    control::Attempt attempt = 0;  // what job control knows it by
    std::unique_ptr<Member> member;
    protocol::JobId job = protocol::kNoJob;  // once it is known
    bool gone = false;                       // the last of its trainers
    std::uint32_t notices = 0;               // told so far
    std::optional<control::JobDescriptor> descriptor;
    control::Epoch epoch = 0;
    // Of its hub's aggregators, if this server calls them.
    std::vector<control::HubCaller> hub_callers;
    control::Epoch halted_up_to = 0;  // by another server's, for what is before this epoch
    std::optional<control::CollectiveName> asked;  // by the newest command::Hold
    std::string why_ended;                         // empty before
    std::string last_report;  // the last explanation, while nothing has completed since
    // Trainers that have left in order while the job goes on: of this server, by number, until what
    // they had submitted is known; and all of which the leader has told.
    struct Leaving {
      std::string how;
      unsigned looks = 0;
    };
    std::map<unsigned, Leaving> leaving;
    control::Departures departures;
    // By trainer: what it has asked about and has not heard of yet.
    std::map<unsigned, std::pair<std::uint64_t, control::CollectiveName>> asking;
    // How far it had come when its collectives last made progress, and what its neighbours'
    // counters were then.
    control::LaneNumbers progress;
    std::map<bcube::ServerId, NeighbourNumbers> since;
  };
  using Attempt = control::Attempt;
  using Phases = std::vector<std::pair<Attempt, control::JobAgent::Phase>>;

  bool any_actions() const { return carried_out_ != in_work_.size() || !actions_.empty(); }
  bool carry_out_all(control::Instant now, const MayGoOn& may_go_on);

  // node_actions.cc
  void try_to_carry_out(const control::JobAction& action, control::Instant now);
  void carry_out(const control::JobAction& action, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Prepare& prepare, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Start& start, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Hold& hold, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Halt& halt, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Reset& reset, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Count& count, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Note& note, control::Instant now);
  void carry_out(JobGroup& group, const control::command::Detach& detach, control::Instant now);
  void tell(JobGroup& group, const control::notice::Joined& joined, control::Instant now);
  void tell(JobGroup& group, const control::notice::Refused& refused, control::Instant now);
  void tell(JobGroup& group, const control::notice::Failed& failed, control::Instant now);
  void tell(JobGroup& group, const control::notice::Ended& ended, control::Instant now);
  void tell(JobGroup& group, const control::notice::Report& report, control::Instant now);
  void happened(const JobGroup& group, const control::JobEvent& event, control::Instant now);
  void tell_counts(const JobGroup& group, control::Instant now);
  void halt_for_good(JobGroup& group);
  void evict(const JobGroup& group, unsigned local, const std::string& violation,
             control::Instant now);

  // node_joining.cc
  JobGroup* group_of(const TrainerRequest& request);
  TrainerId begin_group(const control::JobOptions& options, const TrainerRequest& request,
                        const std::shared_ptr<SessionRegion>& region, control::Instant now);
  TrainerId join_group(JobGroup& group, const control::JobOptions& options,
                       const TrainerRequest& request, const std::shared_ptr<SessionRegion>& region,
                       control::Instant now);

  // node_hubs.cc
  bool calls_aggregators(const JobGroup& group, const ServerHub* hub) const;
  std::optional<std::string> call_aggregators(JobGroup& group, control::Instant now);
  void begin_calls(JobGroup& group, const ServerHub& hub, control::Instant now);
  void end_calls(const JobGroup& group, control::Instant now);
  void on_hub_message(const control::NodeMessage& message, control::Instant now);
  void lose_hub(const JobGroup& group, const std::string& why, control::Instant now);

  // node_departures.cc
  void tell_of_the_gone(JobGroup& group, control::Instant now);
  void tell_of(JobGroup& group, unsigned local, const Farewell& farewell, control::Instant now);
  void settle_leaving(JobGroup& group, control::Instant now);
  void miss_the_gone(JobGroup& group, control::Instant now);
  void end_deserted(JobGroup& group);
  std::uint32_t explain(JobGroup& group, const std::string& text);

  static std::string end_text(const JobGroup& group, const control::notice::Ended& ended);
  std::string ports_say(bcube::ServerId server) const;
  std::vector<control::PeerFacts> peer_facts(const JobGroup& group,
                                             const control::notice::Report& report,
                                             control::Instant now) const;
  JobGroup* find(Attempt attempt);
  JobGroup* running_group(protocol::JobId job);
  void note_progress(JobGroup& group);
  void listen_to_neighbours(control::Instant now);
  void greet(control::Instant now);
  void set_peers(control::Instant now);
  // To a node of this or another process.
  void send(control::NodeMessage message, control::Instant now);
  void send_all(const control::NodeMessages& messages, control::Instant now);
  std::vector<bcube::ServerId> without_those_here(std::vector<bcube::ServerId> servers) const;
  NeighbourNumbers neighbour(bcube::ServerId server) const;
  // Of jobs that the engines have let go, as far as their packets are back.
  void give_back_packets() {
    for (auto& [attempt, group] : groups_) group.member->give_back_packets();
    around_.departed.reap();
  }
  void forget_the_gone(control::Instant now);
  // The trainers of a job that stay, or one of them.
  void notify(const JobGroup& group, const shared::Notice& notice);
  void notify(const JobGroup& group, unsigned local, const shared::Notice& notice);
  void refuse(JobGroup& group, const std::string& why);
  void admit_untold();
  void record_abort(const JobGroup& group, const std::string& why);
  void record(const std::string& line);
  const bcube::AddressSpace& space() const { return around_.topology.space(); }

  bcube::ServerId server_;
  control::Incarnation incarnation_;
  NodeSurroundings& around_;
  std::unique_ptr<NodeEngines> engines_;
  control::Introductions introductions_;
  std::unique_ptr<MessageCourier> courier_;  // null: there are no other processes
  control::JobNode jobs_;
  control::Greetings greetings_;
  AggregatedHubs aggregated_;
  control::JobActions actions_;  // to be carried out, behind what is in work
  control::JobActions in_work_;
  std::size_t carried_out_ = 0;  // of what is in work
  std::map<Attempt, JobGroup> groups_;
  // Since the last work(). An agent may be over without an action: then nobody is greeted for it.
  bool stirred_ = false;
  Phases phases_;                                   // of the agents, when the peers were last set
  std::map<bcube::ServerId, std::uint64_t> heard_;  // by greeted neighbour: frames received by then
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_NODE_NODE_H_
