// One server's share of one lcore: receives, adds and sends for the threads assigned to it, run to
// completion.
//
//   for each port: receive a burst -> check -> flow (acknowledge, de-duplicate) -> its user
//                                           -> relay, where hops remain
//                                           -> a sibling, where the queue was the wrong one
//   frames that siblings have handed over, likewise
//   greetings of neighbours, and routes where links have gone down or come up
//   probes of paths, and flows that move to one that has more left
//   for each session: take submissions; mail between trainers of this server
//   for each hub: take pushed keys, tell ended ones
//   timers
//   for each port: grant credit
//   for each port: fill the transmit burst: owed acknowledgements, resends, then segments and
//                  relayed frames
//   for each executor with collectives in flight: finished ones
//   for each held job: whether more has completed
//
// Which of this is done for a job depends on its state (engine_job.h).
//
// The cost of an iteration is that of what is active. Of the jobs that are idle only a few are
// looked at (job_watch.h); a flow for which nothing is to be done costs nothing (port_queue.h).
//
// An engine owns one receive and one transmit queue (the same index) on each of its server's ports
// and everything in its jobs between attach() and detach(). Engines share nothing but a Session's
// counters (session.h), and where frames may come to the wrong queue, the rings by which they hand
// them over (hand_over.h). All members are called on the lcore's thread, or, by the control thread,
// through Poller::call() while the lcore stands still.
//
// Time is handed in (poll(now)), in nanoseconds of the poller's Clock. Nothing on the data path
// throws, locks, allocates or logs: what goes wrong is counted (EngineCounters) and the frame
// dropped. Only where links go down or come up, and where paths are compared, some times in a
// second, are flows moved, which allocates.
#ifndef GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_
#define GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bcube_forwarding/link_watch.h"
#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/path_prober.h"
#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"
#include "dataplane/engine/engine_counters.h"
#include "dataplane/engine/engine_event.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/failed_hops.h"
#include "dataplane/engine/flow_table.h"
#include "dataplane/engine/hand_over.h"
#include "dataplane/engine/job_watch.h"
#include "dataplane/engine/message_inbox.h"
#include "dataplane/engine/neighbour_counters.h"
#include "dataplane/engine/port_loads.h"
#include "dataplane/engine/port_queue.h"
#include "dataplane/engine/server_links.h"
#include "dataplane/engine/unasked_room.h"
#include "dataplane/engine/wrong_greeting.h"
#include "dataplane/fabric/port.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/pollable.h"
#include "protocol/credit.h"
#include "protocol/job_id.h"
#include "protocol/timer_wheel.h"

namespace gradcube::dataplane {

struct EngineSettings {
  bcube::ServerId server = 0;
  std::uint16_t queue = 0;  // of every port
  // Thread t of any plan runs on the engine that has thread t modulo engines: so the source port of
  // its frames, which is t ports behind the first, steers them to the queue of that engine.
  std::vector<unsigned> threads;
  unsigned engines = 1;             // of the server
  std::uint32_t segment_bytes = 0;  // the most a segment carries; a multiple of kUnitBytes
  // Short pieces travel together up to so many. The same at all servers.
  std::uint32_t block_bytes = UINT32_MAX;
  unsigned window = 32;  // the most segments that a neighbour may be ahead, per flow
  FlowSettings flows;
  // What the engines of the server know of its links; without, all work. One engine of a server
  // has an interval: it greets the neighbours (engine_links.cc). 0: it does not.
  ServerLinks* links = nullptr;
  Nanoseconds greeting_interval = 0;
  // What greetings say of the settings. Neighbours with another fingerprint are not heard.
  protocol::SettingsDigest digest;
  // Each port tells about once a second which one it is, to whoever hears it: for ports that may be
  // cabled to others than their neighbours.
  bool announces = false;
  // How often flows' paths are probed and compared (engine_paths.cc), and the seed of the pauses
  // between; 0: only when somebody asks.
  Nanoseconds probing_interval = 0;
  std::uint64_t probing_seed = 1;
  // Of the links, by level; none: they are as fast as they go.
  std::vector<std::uint64_t> bits_per_second;
  // Where the messages of other servers go; without, nobody here reads them.
  MessageInbox* inbox = nullptr;
  // Where frames may come to the wrong queue: between this engine, whose number is that of its
  // queue, and its siblings. Without, each frame is taken for this engine's.
  HandOver* hand_over = nullptr;
};

// A port of the server's, and the credit for what comes in through it, which its engines share.
struct EnginePort {
  Port* port = nullptr;
  protocol::PortCredit* credit = nullptr;
};

// Where an engine's packets come from (host/packet_memory.h).
struct EnginePools {
  PacketPool& segments;  // headers and references to payloads
  PacketPool& answers;   // acknowledgements and probes
};

class Engine final : public Pollable {
 public:
  static constexpr unsigned kBurst = PortQueue::kBurst;

  // ports: all of the server's, by number. pools: only this lcore allocates from them.
  // Ports, credit, pools and sink must outlive the engine.
  Engine(const EngineSettings& settings, const bcube::AddressSpace& space,
         const std::vector<EnginePort>& ports, const EnginePools& pools, EventSink& events);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // One iteration of the loop above.
  unsigned poll(Nanoseconds now) override;

  // Whether a job that moves has collectives or unanswered packets in flight, relayed frames wait,
  // or progress has to be told: then timers run. Jobs that are armed or halted wait for the control
  // thread, and keep no lcore awake.
  bool busy() const;
  // When the next timer or delayed acknowledgement of a busy engine is due; at once if the last
  // poll() could not send or report something, because nobody announces that there is room again.
  // For an engine that is not busy the next greeting, if it greets: what its timers still wait for
  // (news of credit) can wait until there is work. Takes time in the number of active flows: for a
  // poller that is about to sleep, and a virtual clock that jumps.
  Nanoseconds next_event() const override;
  // Its trainers ring their sessions' doorbells while it sleeps.
  void prepare_wait() override;
  void finish_wait() override;

  // Control thread, through Poller::call() ----------------------------------

  // Whether this engine can run such a job, before there is anything of it; any thread, touches
  // nothing of the engine's running state. Throws a control::SetupError when a session's memory of
  // region_bytes is too large for its segments to be numbered. Returns how many windows of packets
  // the job needs here: one for each flow of its collectives, and one for all of its mail.
  std::uint32_t check(const LanePlans& lanes, std::uint64_t region_bytes) const;
  // Builds what this engine needs of a job. Threads and errors as of check().
  std::unique_ptr<EngineJob> prepare(protocol::JobId job, Session& session, const LanePlans& lanes,
                                     std::uint32_t weight, const aggregation::Kernels& kernels,
                                     JobPackets packets) const;
  // Arms the job in the epoch. The ranks are kept over resets.
  void attach(EngineJob& job, std::uint16_t epoch, const RankOrder& ranks = {});
  // The following do nothing where the job is not attached. start() does nothing unless it is
  // armed, and hold() unless it runs.
  void start(protocol::JobId job);
  void hold(protocol::JobId job);
  void halt(protocol::JobId job);
  // Of a held or a halted job: drops what is in flight, fails everything through the cuts (what is
  // published at once, the rest as it is taken), and arms the job in the epoch, in fresh streams.
  void reset(protocol::JobId job, const LaneCuts& cuts, std::uint16_t epoch);
  // For a trainer of this server that has gone, in order: takes what it has submitted, and nothing
  // that its memory may still say later. False: not yet, as the job does not run, or not here.
  bool take_last(protocol::JobId job, unsigned local);
  // A trainer that the job goes on without. Of this server: after take_last().
  void depart(protocol::JobId job, bcube::ServerId server, unsigned local);
  // Drops all that it holds of the job.
  void detach(protocol::JobId job);

  // A hub of the job (engine_hubs.cc). check_hub() and prepare_hub() as check() and prepare(), for
  // an attached job without a hub; the session has the hub already where it is the leader's. A
  // reset and the end of a job detach it, too.
  std::uint32_t check_hub(const control::hub::HubModel& model, const ServerHubShape& shape) const;
  std::unique_ptr<EngineHub> prepare_hub(EngineJob& job, std::shared_ptr<ServerHub> hub,
                                         PacketReservation reserved) const;
  void attach_hub(EngineJob& job, std::unique_ptr<EngineHub> hub);
  void detach_hub(EngineJob& job);

  // Takes a whole frame that begins with a hop through this port, and sends it among those that it
  // relays. If too many of them wait, the frame is dropped.
  void post(unsigned port, rte_mbuf* frame);
  // The parallel paths to another server whose hops all work, as far as this engine has found out
  // or relays have told it; the shortest first.
  std::vector<bcube::Route> paths_to(bcube::ServerId server) const;
  // Probes all paths to another server soon.
  void ask_paths(bcube::ServerId server) { prober_.ask(server); }
  // What came of it, without paths if there are none; null while their answers are awaited.
  const bcube::PathProber::News* asked_paths(bcube::ServerId server) const {
    return prober_.asked(server);
  }

  // Whether frames carry CRC32C, and whether it is demanded of what comes in.
  void set_checksums(bool send, bool demand) {
    checksum_sent_ = send;
    checksum_demanded_ = demand;
  }

  const EngineSettings& settings() const { return settings_; }
  const EngineCounters& counters() const { return counters_; }
  // Of the neighbour that a hop leads to; zeros if there is none. Any thread.
  NeighbourNumbers neighbour(bcube::Hop hop) const;
  const std::vector<EngineJob*>& jobs() const { return attached_; }
  // What the port has heard lately and should not; nothing of the engines that do not greet.
  WrongGreeting wrong_greeting(unsigned port) const;

 private:
  // engine_receive.cc
  unsigned receive(PortQueue& in);
  unsigned receive_handed();
  void receive_any(rte_mbuf** packets, unsigned count);
  template <bool kDemandChecksum, bool kHandsOver>
  void receive_burst(rte_mbuf** packets, unsigned count);
  template <bool kDemandChecksum, bool kHandsOver>
  bool receive_packet(rte_mbuf* packet);
  bool hand_over(rte_mbuf* packet);
  bool receive_unsegmented(rte_mbuf* packet, const protocol::ParsedFrame& frame,
                           std::span<const std::uint8_t> head);
  bool relay(rte_mbuf* packet, const protocol::ParsedFrame& frame);
  template <typename User>
  bool receive_segment(Flow& flow, User& user, const protocol::ParsedFrame& frame,
                       const Contribution& contribution);
  Flow* find_flow(const protocol::ParsedFrame& frame);
  Flow* find_mail_flow(const protocol::ParsedFrame& frame);
  DropReason reason_for_no_flow(const protocol::TransportHeader& transport) const;

  // engine_links.cc
  void keep_links();
  void greet();
  void publish_links();
  unsigned send_greetings(PortQueue& out, unsigned room);
  rte_mbuf* greeting_to(const bcube::Neighbour& neighbour);
  rte_mbuf* announcement(unsigned port);
  rte_mbuf* make_link_frame(protocol::FrameType type, const protocol::LinkAddresses& addresses,
                            const protocol::RoutingHeader& routing, std::uint16_t source_port,
                            const protocol::LinkHeader& link);
  void receive_link_frame(const protocol::ParsedFrame& frame,
                          std::span<const std::uint8_t> headers);
  std::optional<DropReason> take_greeting(const protocol::ParsedFrame& frame);
  bool take_path_failure(const protocol::ParsedFrame& frame);
  // Of this server, that the hop leaves through.
  unsigned port_to(bcube::Hop hop) const { return neighbours_.find(hop.level, hop.digit)->port; }
  bool works(bcube::ServerId from, unsigned level, bcube::ServerId to) const;
  bool works(const bcube::Route& route) const;
  bcube::Route route_of(const Flow& flow) const;
  // Those that begin with a link over which something is heard, whatever relays have told.
  std::vector<bcube::Route> paths_over_links_heard(bcube::ServerId server) const;
  std::vector<bcube::Route> paths_where(bcube::ServerId server,
                                        const bcube::HopFilter& usable) const;
  void reroute();
  bool move(Flow& flow, const bcube::Route& route);
  std::optional<protocol::RoutingHeader> way_back(const protocol::RoutingHeader& routing) const;
  void tell_path_failure(rte_mbuf* packet, const protocol::RoutingHeader& routing);

  // engine_paths.cc
  bool may_choose(const Flow& flow) const;
  bool sends_much(const Flow& flow) const;
  template <typename Function>
  void for_each_choosing(const Function& function);
  void keep_paths();
  std::vector<bcube::ServerId> measure_flows();
  std::vector<bcube::Route> routes_to_probe(bcube::ServerId server);
  void probe_paths(bcube::ServerId server);
  void choose_paths(const bcube::PathProber::News& news);
  bool send_path_probe(const protocol::RoutingHeader& routing, unsigned thread,
                       const protocol::PathProbeHeader& probe);
  bool pass_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame, unsigned port_out);
  void receive_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame);

  // engine_transmit.cc
  unsigned transmit(PortQueue& out);
  template <bool kChecksum>
  void fill(PortQueue& out, unsigned room);
  template <bool kChecksum>
  FlowRotation::Visit send_new(Flow& flow, std::uint32_t& bytes);
  template <bool kChecksum>
  FlowRotation::Visit ask_for_credit(Flow& flow, std::uint32_t& bytes);
  template <bool kChecksum>
  FlowRotation::Visit send_again(Flow& flow);
  template <bool kChecksum>
  FlowRotation::Visit send_owed(Flow& flow);
  template <bool kChecksum>
  bool send_segment(Flow& flow, std::uint64_t sequence, const OutgoingSegment& outgoing,
                    std::uint8_t backlog);
  template <bool kChecksum>
  bool send_without_segment(Flow& flow, bool probe);
  template <bool kChecksum>
  void put(Flow& flow, rte_mbuf* head, std::size_t header_bytes,
           std::span<const std::uint8_t> payload);
  void arm_timer(Flow& flow);

  // engine.cc
  protocol::LinkAddresses addresses_to(const bcube::Neighbour& neighbour) const;
  bool owes_others() const;
  unsigned transmit_all();
  unsigned take_requests();
  unsigned take_submissions(EngineJob& job);
  void await_completions(EngineJob& job);
  unsigned begin_published(EngineJob& job);
  unsigned finish_collectives();
  unsigned complete(EngineJob& job);
  void run_timers();
  void report_failures(PlanExecutor& executor);
  void report_progress();
  // Fills in the event's job, epoch and server. False: it was refused.
  bool report(const EngineJob& job, EngineEvent event);

  // engine_hubs.cc
  unsigned work_hubs();
  unsigned end_rounds(EngineJob& job);
  void tell_disagreement(EngineJob& job, HubExecutor& executor);
  bool any_active_hub() const;

  // engine_jobs.cc
  static FlowScheduler::Rank rank_of(const Flow& flow);
  static std::uint16_t epoch_of(const Flow& flow);
  void take_route(Flow& flow, const bcube::Route& route);
  bool runs(unsigned thread) const;
  void arm(EngineJob& job, std::uint16_t epoch);
  void add_flows(EngineJob& job);
  void open_channel(EngineJob& job, MailChannel& channel);
  void add_flow(Flow& flow);
  void clear(EngineJob& job, const LaneCuts& cuts);
  protocol::FrameTemplate frame_template_of(const Flow& flow) const;
  EngineJob* find_job(protocol::JobId id) const;
  // The same, and the job is watched: for what changes it.
  EngineJob* wake_job(protocol::JobId id);

  EngineSettings settings_;
  bcube::NeighbourTable neighbours_;
  EnginePools pools_;
  EventSink& events_;
  std::vector<std::unique_ptr<PortQueue>> ports_;  // by number
  FlowTable flows_;
  std::vector<EngineJob*> attached_;
  JobWatch watch_;                      // over the attached ones
  std::vector<PlanExecutor*> working_;  // those with collectives in flight
  std::vector<EngineJob*> with_hubs_;
  std::vector<EngineJob*> completing_;  // whose submissions are not all completed; leader engine
  protocol::TimerWheel timers_;
  bool checksum_sent_ = false;
  bool checksum_demanded_ = false;
  Nanoseconds now_ = 0;
  unsigned port_in_ = 0;  // that is being received from
  bool retries_ = false;  // the last poll() found no packet memory, or no room for an event
  NeighbourRows neighbour_counters_;               // by level and digit
  std::vector<std::vector<UnaskedRoom>> unasked_;  // the same
  // Of all servers that are no neighbours. Nothing goes there unasked: their switch ports have no
  // room for it.
  NeighbourCounters distant_counters_;
  UnaskedRoom none_unasked_{0};
  ServerLinks own_links_;  // in use where the settings have none
  ServerLinks& links_;
  std::uint32_t links_seen_ = 0;  // their version
  FailedHops failed_hops_;
  Nanoseconds rerouted_at_ = 0;
  Nanoseconds reroute_at_ = protocol::kNever;  // for what relays have told
  Nanoseconds next_path_failure_ = 0;
  PortLoads loads_;
  bcube::PathProber prober_;
  // Of the engine that greets.
  bcube::LinkWatch link_watch_;
  Nanoseconds next_greeting_ = 0;
  Nanoseconds next_announcement_ = 0;
  std::vector<std::vector<std::uint64_t>> direct_frames_;  // by level and digit, one interval ago
  std::vector<WrongGreeting> wrong_greetings_;             // by port; the last of each
  EngineCounters counters_;
};

// The hop that leads to a neighbour: the link to it.
inline bcube::Hop hop_to(const bcube::Neighbour& neighbour) {
  return {static_cast<std::uint8_t>(neighbour.level), static_cast<std::uint8_t>(neighbour.digit)};
}

// Where the headers of a packet go: all of the pools have room for the longest route.
inline std::span<std::uint8_t> header_room(rte_mbuf* head) {
  return {rte_pktmbuf_mtod(head, std::uint8_t*), protocol::kMaxHeaderBytes};
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_
