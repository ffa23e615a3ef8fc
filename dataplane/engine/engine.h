// One server's share of one lcore: receives, adds and sends for the threads assigned to it, run to
// completion.
//
//   for each port: receive a burst -> check -> flow (acknowledge, de-duplicate) -> segment -> add
//   for each session: take submissions
//   timers
//   for each port: grant credit
//   for each port: fill the transmit burst: owed acknowledgements, resends, segments
//   for each job: finished collectives
//
// An engine owns one receive and one transmit queue (the same index) on each of its server's ports
// and everything in its jobs between attach() and detach(). Engines share nothing but a Session's
// counters (session.h). All members are called on the lcore's thread, or, by the control thread,
// through Poller::call() while the lcore stands still.
//
// Time is handed in (poll(now)), in nanoseconds of the poller's Clock. Nothing on the data path
// throws, locks, allocates or logs: what goes wrong is counted (EngineCounters) and the frame
// dropped.
#ifndef GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_
#define GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/engine/engine_counters.h"
#include "dataplane/engine/engine_job.h"
#include "dataplane/fabric/port.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/pollable.h"
#include "protocol/credit.h"
#include "protocol/job_id.h"
#include "protocol/timer_wheel.h"

namespace gradcube::dataplane {

// Something that the control thread has to act on.
struct EngineEvent {
  enum class Kind : std::uint8_t { disagreement, overflow, violation };
  Kind kind{};
  std::uint32_t job = 0;
  std::uint16_t epoch = 0;
  bcube::ServerId server = 0;  // where it was seen
  Disagreement disagreement{};
  Overflow overflow{};
};

// Where engines put events; the control thread empties it (event_queue.h).
class EventSink {
 public:
  virtual ~EventSink() = default;
  // False: there is no room, and the engine tries again. On the engine's thread; must not block.
  virtual bool report(const EngineEvent& event) = 0;
};

struct EngineSettings {
  bcube::ServerId server = 0;
  std::uint16_t queue = 0;          // of every port
  std::vector<unsigned> threads;    // the plan's threads that run here
  std::uint32_t segment_bytes = 0;  // the most a segment carries; a multiple of kUnitBytes
  // Bytes granted and not here yet, per port.
  std::uint64_t credit_budget = protocol::CreditSettings::kUnlimited;
  unsigned window = 32;  // segments a neighbour may be ahead, per flow
  FlowSettings flows;
};

class Engine final : public Pollable {
 public:
  static constexpr unsigned kBurst = 32;

  // ports[level] is the server's port at that level. packets: headers and references to payloads,
  // for this lcore alone. Plan, ports, pool and sink must outlive the engine. Throws a
  // control::SetupError when a job could have more packets on their way than can be counted
  // (EngineJob::kMostReferences).
  Engine(const EngineSettings& settings, const control::Plan& plan, std::vector<Port*> ports,
         PacketPool& packets, EventSink& events);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // One iteration of the loop above.
  unsigned poll(Nanoseconds now) override;

  // Whether a job has collectives or unanswered packets in flight: then timers run, and the lcore
  // must not sleep.
  bool busy() const override;
  // An engine for which anything is due is busy, so it has no event of its own.
  Nanoseconds next_event() const override { return kNever; }
  // Its trainers ring their sessions' doorbells while it sleeps.
  void prepare_wait() override;
  void finish_wait() override;

  // Control thread, through Poller::call() ----------------------------------

  // Builds what this engine needs of a job; any thread, touches nothing of the engine's running
  // state. Throws a control::SetupError when the session's memory is too large for its segments to
  // be numbered.
  std::unique_ptr<EngineJob> prepare(std::uint32_t job, Session& session,
                                     const aggregation::Kernels& kernels) const;
  void attach(EngineJob& job);
  void start(std::uint32_t job, std::uint16_t epoch);
  void freeze(std::uint32_t job);
  // Of a frozen job: fails everything through `fails_through` with `code` and makes the streams
  // fresh; start() follows.
  void reset(std::uint32_t job, std::uint64_t fails_through, std::int32_t code);
  // Drops all that it holds of the job.
  void detach(std::uint32_t job);

  // Whether frames carry CRC32C, and whether it is demanded of what comes in.
  void set_checksums(bool send, bool demand) {
    checksum_sent_ = send;
    checksum_demanded_ = demand;
  }

  const EngineSettings& settings() const { return settings_; }
  const EngineCounters& counters() const { return counters_; }
  const std::array<EngineJob*, protocol::kMaxJobs>& jobs() const { return jobs_; }

 private:
  // engine_receive.cc
  unsigned receive(unsigned level);
  template <bool kDemandChecksum>
  void receive_burst(unsigned level, rte_mbuf** packets, unsigned count);
  template <bool kDemandChecksum>
  bool receive_packet(unsigned level, rte_mbuf* packet);
  bool receive_segment(Flow& flow, const protocol::ParsedFrame& frame,
                       const Contribution& contribution);
  Flow* find_flow(unsigned level, const protocol::ParsedFrame& frame);

  // engine_transmit.cc
  unsigned transmit(unsigned level);
  template <bool kChecksum>
  void fill(unsigned level, unsigned room);
  template <bool kChecksum>
  bool send_new(Flow& flow);
  template <bool kChecksum>
  bool send_again(Flow& flow);
  template <bool kChecksum>
  bool send_owed(Flow& flow);
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
  unsigned take_requests();
  unsigned take_submissions(EngineJob& job);
  void finish_collectives();
  void complete(EngineJob& job);
  void run_timers();
  void report_failures(EngineJob& job, const PlanExecutor& executor);
  // Fills in the event's job, epoch and server.
  void report(EngineJob& job, EngineEvent event);
  void add_flows(EngineJob& job);
  void remove_flows(EngineJob& job);
  void clear(EngineJob& job, std::uint64_t last_failed);
  protocol::FrameTemplate frame_template_of(const Flow& flow, const EngineJob& job) const;
  void update_credit();
  EngineJob* find_job(std::uint32_t id) {
    const unsigned index = protocol::job_index(id);
    if (index >= protocol::kMaxJobs) return nullptr;
    EngineJob* job = jobs_[index];
    return job != nullptr && job->id() == id ? job : nullptr;
  }

  // A set of flows that are served one after another.
  struct RoundRobin {
    std::vector<Flow*> flows;
    std::size_t next = 0;
    void remove_all_of(const EngineJob& job);
  };
  // One port as this engine uses it. The classes are served in order, the plan's first step before
  // all others, so that every link still has work at the end; with results first, the last segments
  // would cross an idle network one step at a time.
  struct PortQueue {
    PortQueue(Port& its_port, unsigned steps, const protocol::CreditSettings& settings)
        : port(&its_port), classes(steps + 1), credit(settings) {}

    Port* port;
    RoundRobin all;
    std::vector<RoundRobin> classes;  // what aggregation sends, by step; then results
    protocol::CreditPool credit;
    std::array<rte_mbuf*, kBurst> burst{};
    unsigned filled = 0;
  };

  EngineSettings settings_;
  const control::Plan& plan_;
  bcube::NeighbourTable neighbours_;
  PacketPool& packets_;
  EventSink& events_;
  std::vector<PortQueue> ports_;  // by level
  std::array<EngineJob*, protocol::kMaxJobs> jobs_{};
  std::vector<EngineJob*> attached_;
  protocol::TimerWheel timers_;
  bool checksum_sent_ = false;
  bool checksum_demanded_ = false;
  Nanoseconds now_ = 0;
  EngineCounters counters_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_ENGINE_H_
