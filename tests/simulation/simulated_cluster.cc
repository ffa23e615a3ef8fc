#include "tests/simulation/simulated_cluster.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include "aggregation/kernels.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "tests/simulation/kept_pools.h"

namespace gradcube::simulation {

using dataplane::EngineAt;
using dataplane::EngineCounters;
using dataplane::SwitchPortCounts;

namespace {

constexpr unsigned kFirstLcore = 1;

control::PlanChoice choice_without_wishes(const control::Topology& topology) {
  const auto all = control::Placement::all(topology);
  return control::make_choice(control::default_algorithm_of_jobs(topology, all), topology, all,
                              "simulation");
}

}  // namespace

SimulatedCluster::SimulatedCluster(const SimulationSettings& settings)
    : settings_(settings),
      choice_(choice_without_wishes(settings.cluster.rated_topology())),
      messages_(settings.cluster.seed),
      random_(settings.seed) {
  dataplane::LocalClusterOptions options;
  options.settings = settings.cluster;
  if (!settings.links_are_watched) options.settings.greeting_ns = 0;
  if (!settings.paths_are_probed) options.settings.probing_ns = 0;
  for (unsigned i = 0; i < settings.lcores; ++i) options.lcores.push_back({kFirstLcore + i, -1});
  options.incarnation = incarnation_;
  options.timing = settings.timing;
  if (settings.frames_are_authenticated) options.key = control::Secret{1};
  options.timing.hub_threads = std::launch::deferred;
  options.nodes_greet_each_other = true;
  options.messages_pass_the_fabric = settings.messages_pass_the_fabric;
  if (settings.attack.any()) {
    wiretap_.emplace(settings.attack, settings.seed, settings.cluster.mtu, clock_);
  }
  if (settings.frames_are_scattered || wiretap_.has_value()) {
    options.replace_ports = [this](bcube::ServerId, std::vector<dataplane::Port*> ports) {
      for (dataplane::Port*& port : ports) port = replaced(port);
      return ports;
    };
  }
  cluster_ = std::make_unique<dataplane::LocalCluster>(options, clock_,
                                                       aggregation::select_kernels(512), events_);
  nodes().around().channel = this;
  messages_.divert(nodes());
  messages_.set_faults(settings.messages);
  // What scatters frames, or is on the wires, does not ring.
  const bool all_ring = !settings.frames_are_scattered && !wiretap_.has_value();
  pollers_.emplace(SimulatedPollers::Schedule{settings.stalls, all_ring, settings.pollers_go_on,
                                              settings.iterate_poller},
                   cluster_->pollers(), clock_, random_);
}

dataplane::Port* SimulatedCluster::replaced(dataplane::Port* port) {
  if (settings_.frames_are_scattered) {
    port = &scattering_.emplace_back(*port, settings_.seed + scattering_.size() + 1);
  }
  return wiretap_.has_value() ? &tapped_.emplace_back(*port, *wiretap_) : port;
}

SimulatedCluster::~SimulatedCluster() {
  pollers_.reset();
  nodes().around().channel = nullptr;
}

std::unique_ptr<SimulatedTrainer> SimulatedCluster::join(const std::string& job,
                                                         bcube::ServerId server,
                                                         std::uint64_t heap_bytes) {
  return join(server, {job, 1000 + server, 1000, heap_bytes});
}

std::unique_ptr<SimulatedTrainer> SimulatedCluster::join(bcube::ServerId server,
                                                         const dataplane::TrainerRequest& request) {
  auto trainer = std::make_unique<SimulatedTrainer>(nodes().at(server).join(request, instant()));
  joining_[trainer->id()] = trainer.get();
  messages_.run(nodes(), instant());
  if (trainer->refusal().has_value()) {
    throw dataplane::JoinRefused(told(*trainer).back().notice.code, *trainer->refusal());
  }
  return trainer;
}

std::vector<std::unique_ptr<SimulatedTrainer>> SimulatedCluster::join_all(
    const std::string& job, std::uint64_t heap_bytes, const std::string& algorithm) {
  std::vector<std::unique_ptr<SimulatedTrainer>> trainers;
  for (const bcube::ServerId server : plan().space().server_list()) {
    dataplane::TrainerRequest request{job, 1000 + server, 1000, heap_bytes};
    request.options.lanes = {{algorithm, 0}};
    trainers.push_back(join(server, request));
  }
  return trainers;
}

void SimulatedCluster::leave(const SimulatedTrainer& trainer, dataplane::Departure departure) {
  joining_.erase(trainer.id());
  if (dataplane::Node* node = nodes().find(trainer.server()); node != nullptr) {
    node->leave(trainer.id(), departure, "was told to go", instant());
    messages_.run(nodes(), instant());
  }
}

std::string SimulatedCluster::explain(const SimulatedTrainer& trainer,
                                      control::CollectiveName collective) {
  const std::size_t before = told(trainer).size();
  dataplane::Node* node = nodes().find(trainer.server());
  if (node == nullptr) return "its node is gone";
  node->inquire(trainer.id(), 1, collective, instant());
  const auto answered = [&] { return told(trainer).size() > before; };
  run_until(answered, 2'000'000'000);
  return answered() ? told(trainer).back().notice.text : "no answer";
}

void SimulatedCluster::kill(bcube::ServerId server) {
  std::erase_if(joining_, [&](const auto& entry) { return entry.first.server == server; });
  nodes().remove(server);
  messages_.go_on(server);
  deaf_.insert(server);
}

void SimulatedCluster::start_anew(bcube::ServerId server) {
  deaf_.erase(server);
  // Now greater, now less than before.
  incarnation_ = incarnation_ * 0x9e3779b97f4a7c15 | 1;
  cluster_->start_node(server, incarnation_);
}

void SimulatedCluster::stop(bcube::ServerId server) {
  messages_.stop(server);
  nodes().stop(server);
  deaf_.insert(server);
}

void SimulatedCluster::go_on(bcube::ServerId server) {
  drain_ports(server);
  deaf_.erase(server);
  messages_.go_on(server);
  nodes().go_on(server);
}

void SimulatedCluster::drain_ports(bcube::ServerId server) {
  std::array<rte_mbuf*, 32> packets{};
  for (dataplane::Port* port : cluster_->emulated().ports(server)) {
    for (std::uint16_t queue = 0; queue < port->queues(); ++queue) {
      while (const auto count = port->receive(queue, packets.data(), packets.size())) {
        rte_pktmbuf_free_bulk(packets.data(), count);
      }
    }
  }
}

void SimulatedCluster::cut_off(bcube::ServerId server, bool both_ways) {
  for (const bcube::ServerId other : plan().space().server_list()) {
    messages_.cut(server, other);
    if (both_ways) messages_.cut(other, server);
  }
  dataplane::EmbeddedFabric& fabric = cluster_->emulated();
  for (const auto& link : fabric.links()) {
    if (link.server != server) continue;
    cut_links_.emplace_back(link, fabric.impairments(link));
    fabric.change_impairments({link}, [both_ways](dataplane::Impairments impairments) {
      impairments.up = !both_ways;
      impairments.loss = 1;
      return impairments;
    });
  }
}

void SimulatedCluster::mend() {
  messages_.mend();
  for (; !cut_links_.empty(); cut_links_.pop_back()) {
    const auto& [link, before] = cut_links_.back();
    cluster_->emulated().change_impairments({link},
                                            [&before = before](const auto&) { return before; });
  }
}

void SimulatedCluster::inject(rte_mbuf* frame, bcube::ServerId to) {
  if (cluster_->emulated().port(to, 0).switch_transmit(0, &frame, 1) != 1) {
    throw std::logic_error("a port has no room for a frame");
  }
  pollers_->ring();
}

void SimulatedCluster::iterate() {
  const unsigned moved = pollers_->iterate();
  for (const bcube::ServerId server : deaf_) drain_ports(server);
  const bool acted = control_runs(moved) && control();
  mix(static_cast<std::uint64_t>(clock_.now()) << 16 ^ moved);
  const std::int64_t soon = clock_.now() + settings_.iteration;
  if (moved != 0 || acted) {
    clock_.advance_to(soon);
  } else {
    // Before `soon` is what is due and could not be done.
    const std::int64_t next = std::max(soon, next_event());
    if (next != soon && random_.below(kJumpsBetweenChecks) == 0) {
      pollers_->check_sleepers([this] { return trace(); });
    }
    clock_.advance_to(next);
  }
  look_at_ = dataplane::kNever;
}

std::int64_t SimulatedCluster::next_event() {
  std::int64_t next = std::min({clock_.now() + kLongestJump, look_at_, pollers_->next_event()});
  if (const auto due = control::earlier(nodes().deadline(), messages_.next()); due.has_value()) {
    next = std::min<std::int64_t>(next, due->count() * 1000);
  }
  return next;
}

bool SimulatedCluster::control_runs(unsigned moved) {
  const unsigned one_in = settings_.control_runs_one_in;
  return moved == 0 || one_in == 1 || random_.below(one_in) == 0;
}

// The daemon's control thread.
bool SimulatedCluster::control() {
  events_.take([this](const dataplane::EngineEvent& event) { nodes().handle(event, instant()); });
  const bool worked = messages_.run(nodes(), instant());
  nodes().look(instant());
  return messages_.run(nodes(), instant()) || worked;
}

void SimulatedCluster::admit(dataplane::TrainerId trainer,
                             const dataplane::JoinedSession& session) {
  const auto found = joining_.find(trainer);
  if (found == joining_.end()) {
    close(session.trainer_doorbell);
    return;
  }
  found->second->admit(session);
  joining_.erase(found);
}

void SimulatedCluster::refuse(dataplane::TrainerId trainer, std::int32_t code,
                              const std::string& message) {
  evict(trainer, code, message);
  const auto found = joining_.find(trainer);
  if (found == joining_.end()) return;
  found->second->refuse(message);
  joining_.erase(found);
}

void SimulatedCluster::notify(dataplane::TrainerId trainer, const shared::Notice& notice) {
  told_[trainer].push_back({notice, false});
}

void SimulatedCluster::give_hub(dataplane::TrainerId trainer, const shared::Notice& notice,
                                int descriptor) {
  told_[trainer].push_back({notice, false});
  hubs_.erase(trainer);
  if (descriptor >= 0) {
    hubs_.emplace(trainer, control::Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)));
  }
}

void SimulatedCluster::evict(dataplane::TrainerId trainer, std::int32_t code,
                             const std::string& message) {
  Told told{{}, true};
  told.notice.type = shared::MessageType::closing;
  told.notice.code = code;
  message.copy(told.notice.text, shared::kNoticeTextBytes - 1);
  told_[trainer].push_back(told);
}

EngineCounters SimulatedCluster::counters() const {
  EngineCounters sum;
  for (const EngineAt& at : cluster_->engines()) add_counters(sum, at.engine->counters());
  return sum;
}

SwitchPortCounts SimulatedCluster::switch_counts() const {
  SwitchPortCounts sum;
  for (const auto& at : cluster_->emulated().switches()) {
    for (std::uint16_t port = 0; port < at.fabric->ports(); ++port) {
      add_counters(sum, at.fabric->counts(port));
    }
    for (const auto& trunk : at.fabric->trunk_counts()) add_counters(sum, trunk.counts);
  }
  return sum;
}

unsigned SimulatedCluster::packets_in_use_of(const char* pools) const {
  unsigned packets = 0;
  for (std::size_t i = 0; i < cluster_->pollers().size(); ++i) {
    const std::string name = fmt::format("{}-{}", pools, cluster_->lcore_of(i));
    const rte_mempool* pool = pool_in_use(name);
    packets += pool->populated_size - rte_mempool_avail_count(pool);
  }
  return packets;
}

unsigned SimulatedCluster::packets_in_use() const {
  const rte_mempool* messages = pool_in_use("messages");
  return packets_in_use_of("segments") + packets_in_use_of("answers") +
         rte_mempool_in_use_count(pool_in_use("clones")) +
         (messages == nullptr ? 0 : rte_mempool_in_use_count(messages));
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
