#include "tests/simulation/simulated_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <rte_mempool.h>
#include <utility>

#include "aggregation/kernels.h"
#include "control/plan/algorithms.h"

namespace gradcube::simulation {

using dataplane::EngineAt;
using dataplane::EngineCounters;
using dataplane::JobCoordinator;
using dataplane::SwitchPortCounts;

namespace {

constexpr unsigned kFirstLcore = 1;

bool hits(dataplane::SeededRandom& random, double probability) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53 < probability;
}

}  // namespace

SimulatedCluster::SimulatedCluster(const SimulationSettings& settings)
    : settings_(settings),
      plan_(
          control::make_plan(control::kDefaultAlgorithm, settings.cluster.topology, "simulation")),
      random_(settings.seed),
      stalled_until_(settings.lcores, 0),
      order_(settings.lcores) {
  std::vector<control::Lcore> lcores;
  for (unsigned i = 0; i < settings.lcores; ++i) lcores.push_back({kFirstLcore + i, -1});
  cluster_ = std::make_unique<dataplane::EmbeddedCluster>(
      settings.cluster, lcores, clock_, aggregation::select_kernels(512), events_);
  coordinator_ =
      std::make_unique<JobCoordinator>(*cluster_, static_cast<std::uint32_t>(settings.seed));
  coordinator_->set_channel(this);
  order_.resize(cluster_->pollers().size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

SimulatedCluster::~SimulatedCluster() {
  coordinator_.reset();
  cluster_.reset();
}

std::unique_ptr<SimulatedTrainer> SimulatedCluster::join(const std::string& job,
                                                         bcube::ServerId server,
                                                         std::uint64_t heap_bytes) {
  return join({job, server, 1000 + server, 1000, heap_bytes});
}

std::unique_ptr<SimulatedTrainer> SimulatedCluster::join(const dataplane::JoinRequest& request) {
  const dataplane::JoinedSession joined = coordinator_->join(request);
  auto trainer = std::make_unique<SimulatedTrainer>(joined);
  coordinator_->start_if_complete(joined.member);
  return trainer;
}

std::vector<std::unique_ptr<SimulatedTrainer>> SimulatedCluster::join_all(
    const std::string& job, std::uint64_t heap_bytes) {
  std::vector<std::unique_ptr<SimulatedTrainer>> trainers;
  for (bcube::ServerId server = 0; server < servers(); ++server) {
    trainers.push_back(join(job, server, heap_bytes));
  }
  return trainers;
}

void SimulatedCluster::leave(const SimulatedTrainer& trainer, dataplane::Departure departure) {
  drains_until_ = clock_.now() + kDrain;
  coordinator_->leave(trainer.member(), departure, "it was told to");
}

void SimulatedCluster::iterate() {
  const unsigned moved = iterate_pollers();
  const bool acted = control();
  mix(static_cast<std::uint64_t>(clock_.now()) << 16 ^ moved);
  const std::int64_t soon = clock_.now() + kIteration;
  // Before `soon` is what is due and could not be done.
  clock_.advance_to(moved != 0 || acted ? soon : std::max(soon, next_event()));
  look_at_ = dataplane::kNever;
}

unsigned SimulatedCluster::iterate_pollers() {
  auto& pollers = cluster_->pollers();
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random_.below(i)]);
  }
  unsigned moved = 0;
  for (const std::size_t i : order_) {
    if (clock_.now() < stalled_until_[i]) continue;
    if (settings_.stalls > 0 && hits(random_, settings_.stalls)) {
      stalled_until_[i] = clock_.now() + static_cast<std::int64_t>(random_.below(kLongestStall));
      continue;
    }
    moved += pollers[i]->iterate();
  }
  return moved;
}

std::int64_t SimulatedCluster::next_event() {
  const std::int64_t now = clock_.now();
  std::int64_t next = std::min({now + kLongestJump, look_at_, drains_until_});
  const auto& pollers = cluster_->pollers();
  for (std::size_t i = 0; i < pollers.size(); ++i) {
    // One that stalls has perhaps not seen all that was brought to it.
    next = std::min(next, now < stalled_until_[i] ? stalled_until_[i] : pollers[i]->next_event());
  }
  return next;
}

// The daemon's control thread. The coordinator's own time is the system's: here a draining job
// ends when the virtual time for it is over, and never by the system's.
bool SimulatedCluster::control() {
  const std::vector<dataplane::EngineEvent> events = events_.take();
  for (const dataplane::EngineEvent& event : events) {
    if (handler_) {
      handler_(event);
      continue;
    }
    drains_until_ = std::min(drains_until_, clock_.now() + kDrain);
    coordinator_->handle(event);
  }
  const bool over = clock_.now() >= drains_until_;
  if (over) drains_until_ = dataplane::kNever;
  coordinator_->reap(over ? JobCoordinator::SteadyClock::time_point::max()
                          : JobCoordinator::SteadyClock::time_point::min());
  return !events.empty() || over;
}

void SimulatedCluster::notify(dataplane::MemberId member, const shared::Notice& notice) {
  told_[member].push_back({notice, false});
}

void SimulatedCluster::evict(dataplane::MemberId member, std::int32_t code,
                             const std::string& message) {
  Told told{{}, true};
  told.notice.type = shared::MessageType::closing;
  told.notice.code = code;
  message.copy(told.notice.text, shared::kNoticeTextBytes - 1);
  told_[member].push_back(told);
}

EngineCounters SimulatedCluster::counters() const {
  EngineCounters sum;
  for (bcube::ServerId server = 0; server < plan().servers(); ++server) {
    for (const EngineAt& at : cluster_->engines(server)) {
      add_counters(sum, at.engine->counters());
    }
  }
  return sum;
}

SwitchPortCounts SimulatedCluster::switch_counts() const {
  SwitchPortCounts sum;
  for (const auto& at : cluster_->switches()) {
    for (std::uint16_t port = 0; port < at.fabric->ports(); ++port) {
      add_counters(sum, at.fabric->counts(port));
    }
  }
  return sum;
}

unsigned SimulatedCluster::packets_in_use() const {
  unsigned packets = 0;
  for (std::size_t i = 0; i < cluster_->pollers().size(); ++i) {
    const std::string name = fmt::format("packets-{}", cluster_->lcore_of(i));
    packets += rte_mempool_in_use_count(rte_mempool_lookup(name.c_str()));
  }
  return packets + rte_mempool_in_use_count(rte_mempool_lookup("clones"));
}

std::uint64_t SimulatedCluster::trace() const {
  std::uint64_t trace = trace_;
  const auto mix = [&trace](std::uint64_t value) { trace = (trace ^ value) * 0x100000001b3; };
  const EngineCounters engines = counters();
  for (const std::uint64_t count :
       {engines.segments_sent, engines.resent, engines.acknowledgements_sent,
        engines.segments_received, engines.duplicates, engines.collectives}) {
    mix(count);
  }
  for (const std::uint64_t count : engines.malformed) mix(count);
  for (const std::uint64_t count : engines.dropped) mix(count);
  const SwitchPortCounts switches = switch_counts();
  for (const std::uint64_t count : {switches.forwarded, switches.bytes, switches.dropped_loss,
                                    switches.duplicated, switches.corrupted}) {
    mix(count);
  }
  return trace;
}

}  // namespace gradcube::simulation
