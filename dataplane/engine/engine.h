// One server's share of one lcore: receives, adds and sends for the threads assigned to it, run to
// completion.
//
//   for each port: receive bursts -> check -> flow (acknowledge, de-duplicate) -> its user
//                                           -> relay, where hops remain
//                                           -> a sibling, where the queue was the wrong one
//   frames that siblings have handed over, likewise
//   greetings of neighbours, and routes where links have gone down or come up
//   probes of paths, and flows that move to one that has more left
//   for each session: take submissions; mail between trainers of this server
//   for each hub: take pushed keys, tell ended ones
//   timers
//   for each port: grant credit
//   for each port: fill the transmit bursts: owed acknowledgements, resends, segments of short
//                  collectives, then all others and relayed frames
//   for each executor with collectives in flight: finished ones
//   for each held job: whether more has completed
//
// Short collectives are urgent (host/urgency.h): between the iterations of the poller's other
// engines an engine receives what comes by express lanes, and does what follows from it there.
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
// dropped. Only where links go down or come up, where paths are compared, some times in a second,
// and for the first mail between two servers does an iteration allocate. Where the host has no
// memory then, it goes on without, and comes again (attempt.h).
#ifndef GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_
#define GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/route.h"
#include "dataplane/engine/engine_event.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/engine_settings.h"
#include "dataplane/engine/flows/engine_counters.h"
#include "dataplane/engine/flows/flow_table.h"
#include "dataplane/engine/flows/port_queue.h"
#include "dataplane/engine/flows/unasked_room.h"
#include "dataplane/engine/job_watch.h"
#include "dataplane/engine/path_chooser.h"
#include "dataplane/host/pollable.h"
#include "dataplane/links/link_keeper.h"
#include "dataplane/links/neighbour_counters.h"
#include "dataplane/links/port_loads.h"
#include "dataplane/links/server_links.h"
#include "dataplane/links/working_paths.h"
#include "protocol/job_id.h"
#include "protocol/timer_wheel.h"

namespace gradcube::dataplane {

// What is at the end of the headers of a segment, an acknowledgement or a probe.
enum class FrameCheck : std::uint8_t { none, crc, mac };

class Engine final : public Pollable {
 public:
  // ports: all of the server's, by number. pools: only this lcore allocates from them.
  // Ports, credit, pools and sink must outlive the engine.
  Engine(const EngineSettings& settings, const bcube::AddressSpace& space,
         const std::vector<EnginePort>& ports, const EnginePools& pools, EventSink& events);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // One iteration of the loop above.
  unsigned poll(Nanoseconds now) override;
  // The same of what express lanes have brought and of what has been submitted, as far as express
  // lanes take it.
  unsigned poll_urgent(Nanoseconds now) override;

  // Whether a job that moves has collectives or unanswered packets in flight, relayed frames wait,
  // or progress has to be told: then paths are chosen anew from time to time. Jobs that are armed
  // or halted wait for the control thread.
  bool busy() const;
  // When it has to be polled though nothing arrives: for the next timer, delayed acknowledgement,
  // greeting or choice of paths; at once if the last poll() could not send, report or complete
  // something, because nobody announces that it can now. Takes time in the number of active flows:
  // for a poller that is about to sleep, and a virtual clock that jumps.
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
  // Builds what this engine needs of a job. Threads and errors as of check(). secret: of the job;
  // it is used where the engine has keys.
  std::unique_ptr<EngineJob> prepare(protocol::JobId job, Session& session, const LanePlans& lanes,
                                     std::uint32_t weight, const aggregation::Kernels& kernels,
                                     JobPackets packets, const control::Secret& secret = {}) const;
  // Whether a job of this number is attached: no other may be.
  bool has(protocol::JobId id) const { return find_job(id) != nullptr; }
  // Arms the job in the epoch. The ranks are kept over resets.
  void attach(EngineJob& job, std::uint32_t epoch, const RankOrder& ranks = {});
  // The following do nothing where the job is not attached. start() does nothing unless it is
  // armed, and hold() unless it runs.
  void start(protocol::JobId job);
  void hold(protocol::JobId job);
  void halt(protocol::JobId job);
  // Of a job that moves at none of the server's engines: drops what is in flight, fails everything
  // through the cuts (what is published at once, the rest as it is taken), and arms the job in the
  // epoch, in fresh streams.
  void reset(protocol::JobId job, const LaneCuts& cuts, std::uint32_t epoch);
  // For a trainer of this server that has gone, in order: takes what it has submitted, and nothing
  // that its memory may still say later. False: not yet, as the job does not run, or not here.
  bool take_last(protocol::JobId job, unsigned local);
  // A trainer that the job goes on without. Of this server: after take_last().
  void depart(protocol::JobId job, bcube::ServerId server, unsigned local);
  // Drops all that it holds of the job.
  void detach(protocol::JobId job);

  // A hub of the job (engine_hubs.cc). check_hub() and prepare_hub() as check() and prepare(), for
  // an attached job without a hub. Where attach_hub() throws, it has none still; the leader's
  // session has to have the hub, too, before the engine goes on. A reset and the end of a job
  // detach it, too.
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
  std::vector<bcube::Route> paths_to(bcube::ServerId server) const { return paths_.to(server); }
  // Probes of the paths to other servers.
  PathChooser& path_chooser() { return chooser_; }

  // Whether frames carry CRC32C, and whether it is demanded of what comes in. With keys they always
  // carry a MAC instead.
  void set_checksums(bool send, bool demand) {
    if (settings_.keys != nullptr) return;
    sent_check_ = send ? FrameCheck::crc : FrameCheck::none;
    demanded_check_ = demand ? FrameCheck::crc : FrameCheck::none;
  }

  const EngineSettings& settings() const { return settings_; }
  const EngineCounters& counters() const { return counters_; }
  // Of the neighbour that a hop leads to; zeros if there is none. Any thread.
  NeighbourNumbers neighbour(bcube::Hop hop) const;
  const std::vector<EngineJob*>& jobs() const { return attached_; }
  // That the rooms of all neighbours know.
  std::size_t unasked_flows() const;
  // What the port has heard lately and should not; nothing of the engines that do not greet.
  WrongGreeting wrong_greeting(unsigned port) const { return keeper_.wrong_greeting(port, now_); }
  WrongGreeting other_key(unsigned port) const { return keeper_.other_key(port, now_); }
  std::vector<LossyLength> lossy_lengths(unsigned port) const {
    return keeper_.lossy_lengths(port);
  }

 private:
  // engine_receive.cc
  unsigned receive(PortQueue& in, std::uint16_t queue);
  unsigned receive_handed();
  void receive_any(rte_mbuf** packets, unsigned count);
  template <FrameCheck kDemanded>
  void receive_checked(rte_mbuf** packets, unsigned count);
  template <FrameCheck kDemanded, bool kHandsOver>
  void receive_burst(rte_mbuf** packets, unsigned count);
  template <FrameCheck kDemanded, bool kHandsOver>
  bool receive_packet(rte_mbuf* packet, protocol::ParsedFrame& frame);
  bool hand_over(rte_mbuf* packet);
  bool receive_unsegmented(rte_mbuf* packet, const protocol::ParsedFrame& frame,
                           std::span<const std::uint8_t> head);
  bool relay(rte_mbuf* packet, const protocol::ParsedFrame& frame);
  template <typename User>
  bool receive_segment(Flow& flow, User& user, const protocol::ParsedFrame& frame,
                       const Contribution& contribution);
  template <FrameCheck kDemanded>
  Flow* checked_flow(const protocol::ParsedFrame& frame, std::span<const std::uint8_t> headers,
                     std::span<const std::uint8_t> payload);
  Flow* find_flow(const protocol::ParsedFrame& frame);
  Flow* find_mail_flow(const protocol::ParsedFrame& frame);
  EngineJob* job_of_first_mail(const protocol::ParsedFrame& frame);
  DropReason reason_for_no_flow(const protocol::TransportHeader& transport) const;

  // engine_routes.cc
  void send_greetings(PortQueue& out);
  void receive_link_frame(const protocol::ParsedFrame& frame, std::span<const std::uint8_t> headers,
                          std::span<const std::uint8_t> padding);
  // The one that was chosen by what paths have left, else the best that works.
  bcube::Route route_of(const Flow& flow) const;
  void reroute();
  bool move(Flow& flow, const bcube::Route& route);
  // Of this server, that the hop leaves through.
  unsigned port_to(bcube::Hop hop) const { return neighbours_.find(hop.level, hop.digit)->port; }
  protocol::RoutingHeader routing_over(const bcube::Route& route,
                                       bcube::ServerId destination) const;
  void tell_path_failure(rte_mbuf* packet, const protocol::RoutingHeader& routing);
  // A frame of the engine's own: write() fills in its headers, and returns their length. Null if
  // there is no packet for it.
  template <typename Write>
  rte_mbuf* own_frame(const Write& write);
  // Among those that the port relays. False: it found no room.
  template <typename Write>
  bool send_own_frame(unsigned port, const Write& write);

  // engine_paths.cc
  void keep_paths();
  bool send_path_probe(const protocol::RoutingHeader& routing, unsigned thread,
                       const protocol::PathProbeHeader& probe);
  bool pass_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame, unsigned port_out);
  void receive_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame);

  // Of frames that belong to no flow; null: they have a CRC.
  const protocol::ServerKeys* server_keys() const {
    return settings_.keys == nullptr ? nullptr : &settings_.keys->of_servers();
  }

  // engine_transmit.cc
  unsigned transmit(PortQueue& out, unsigned most_plain);
  unsigned hand_to_port(PortQueue& out, PortQueue::Burst& burst, bool lost);
  template <FrameCheck kSent>
  void fill(PortQueue& out);
  template <FrameCheck kSent>
  void fill_plain(PortQueue& out);
  template <FrameCheck kSent>
  FlowRotation::Visit send_own(PortQueue& out, Flow& flow, std::uint32_t& bytes);
  template <FrameCheck kSent>
  FlowRotation::Visit send_new(Flow& flow, std::uint32_t& bytes);
  template <FrameCheck kSent>
  FlowRotation::Visit ask_for_credit(Flow& flow, std::uint32_t& bytes);
  template <FrameCheck kSent>
  FlowRotation::Visit send_again(Flow& flow);
  template <FrameCheck kSent>
  FlowRotation::Visit send_owed(Flow& flow);
  template <FrameCheck kSent>
  bool send_segment(Flow& flow, PortQueue::Burst& burst, std::uint64_t sequence,
                    const OutgoingSegment& outgoing, std::uint8_t backlog);
  template <FrameCheck kSent>
  bool send_without_segment(Flow& flow, bool probe);
  template <FrameCheck kSent>
  void put(Flow& flow, PortQueue::Burst& burst, rte_mbuf* head, std::size_t header_bytes,
           std::span<const std::uint8_t> payload, std::uint64_t sequence);
  std::uint32_t frame_bytes(const Flow& flow, const OutgoingSegment& segment) const;
  void arm_timer(Flow& flow);

  // engine.cc
  // Whether frames wait to be sent on through the port, or greetings.
  bool owes_others(const PortQueue& port) const {
    return !port.relayed.empty() || keeper_.owes(port.number);
  }
  bool owes_others() const;
  void grant_credit();
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
  PortQueue& take_route(Flow& flow, const bcube::Route& route);
  bool runs(unsigned thread) const;
  void lead(Session& session, const LanePlans& lanes) const;
  void arm(EngineJob& job, std::uint32_t epoch);
  void add_flows(EngineJob& job);
  void make_room_for_work();
  void open_channel(MailChannel& channel);
  void add_flow(Flow& flow);
  void connect(Flow& flow);
  void close(Flow& flow);
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
  FrameCheck sent_check_ = FrameCheck::none;
  FrameCheck demanded_check_ = FrameCheck::none;
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
  LinkKeeper keeper_;
  WorkingPaths paths_;
  PortLoads loads_;
  PathChooser chooser_;
  Nanoseconds next_path_failure_ = 0;
  EngineCounters counters_;
};

// Where the headers of a packet go: all of the pools have room for the longest route.
inline std::span<std::uint8_t> header_room(rte_mbuf* head) {
  return {rte_pktmbuf_mtod(head, std::uint8_t*), protocol::kMaxHeaderBytes};
}

template <typename Write>
rte_mbuf* Engine::own_frame(const Write& write) {
  rte_mbuf* packet = pools_.answers.allocate();
  if (packet == nullptr) {
    ++counters_.no_packet_memory;
    return nullptr;
  }
  const std::size_t bytes = write(header_room(packet));
  packet->data_len = static_cast<std::uint16_t>(bytes);
  packet->pkt_len = static_cast<std::uint32_t>(bytes);
  return packet;
}

template <typename Write>
bool Engine::send_own_frame(unsigned port, const Write& write) {
  rte_mbuf* packet = own_frame(write);
  if (packet == nullptr || ports_[port]->relayed.put(packet)) return packet != nullptr;
  rte_pktmbuf_free(packet);
  return false;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_
