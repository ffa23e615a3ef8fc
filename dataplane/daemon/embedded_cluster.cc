#include "dataplane/daemon/embedded_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"

namespace gradcube::dataplane {

EmbeddedCluster::EmbeddedCluster(const control::ClusterSettings& settings,
                                 const std::vector<control::Lcore>& lcores, Clock& clock,
                                 const aggregation::Kernels& kernels, EventSink& events)
    : settings_(settings),
      kernels_(kernels),
      assignment_(control::Assignment::all_servers(
          control::make_plan(control::kDefaultAlgorithm, settings.topology, "--topology"), lcores)),
      parameters_(
          fabric_parameters(settings, static_cast<unsigned>(assignment_.engines(0).size()))) {
  make_pollers(lcores, clock);
  make_fabric();
  make_engines(events);
  connect_fabric();
  fabric_->set_impairments(
      {settings.loss, settings.duplicate, settings.reorder, settings.corrupt, true});
}

EmbeddedCluster::~EmbeddedCluster() = default;

void EmbeddedCluster::discard_packets() { fabric_->discard_packets(); }

void EmbeddedCluster::make_pollers(const std::vector<control::Lcore>& lcores, Clock& clock) {
  std::vector<unsigned> threads_on(lcores.size(), 0);
  const auto index_of = [&](unsigned id) {
    return static_cast<std::size_t>(
        std::find_if(lcores.begin(), lcores.end(),
                     [&](const control::Lcore& l) { return l.id == id; }) -
        lcores.begin());
  };
  for (bcube::ServerId server = 0; server < settings_.topology.servers(); ++server) {
    for (unsigned t = 0; t < assignment_.threads(); ++t)
      ++threads_on[index_of(assignment_.lcore(server, t))];
  }
  for (std::size_t i = 0; i < lcores.size(); ++i) {
    if (threads_on[i] == 0) continue;
    PacketPoolOptions options;
    options.name = fmt::format("packets-{}", lcores[i].id);
    options.count = pool_count(settings_.topology, threads_on[i], parameters_.window);
    pools_.push_back(std::make_unique<PacketPool>(options));
    pollers_.push_back(std::make_unique<Poller>(clock, settings_.idle));
    poller_lcores_.push_back(lcores[i].id);
  }
}

void EmbeddedCluster::make_fabric() {
  std::vector<bcube::ServerId> servers(settings_.topology.servers());
  std::iota(servers.begin(), servers.end(), bcube::ServerId{0});
  fabric_ = std::make_unique<EmbeddedFabric>(embedded_fabric_options(
      settings_, parameters_, static_cast<unsigned>(assignment_.engines(0).size()),
      std::move(servers)));
  fabric_->on_corruption([this] { demand_checksums(); });
}

void EmbeddedCluster::make_engines(EventSink& events) {
  engines_at_.resize(settings_.topology.servers());
  for (bcube::ServerId server = 0; server < settings_.topology.servers(); ++server) {
    const std::vector<Port*> ports = fabric_->ports(server);
    for (const control::EngineAssignment& assigned : assignment_.engines(server)) {
      const auto where = static_cast<std::size_t>(
          std::find(poller_lcores_.begin(), poller_lcores_.end(), assigned.lcore) -
          poller_lcores_.begin());
      EngineSettings settings;
      settings.server = server;
      settings.queue = static_cast<std::uint16_t>(assigned.queue);
      settings.threads = assigned.threads;
      settings.all_threads = assignment_.threads();
      settings.segment_bytes = parameters_.segment_bytes;
      settings.credit_budget = parameters_.credit_budget;
      settings.window = parameters_.window;
      settings.flows = parameters_.flows;
      engines_.push_back(
          std::make_unique<Engine>(settings, space(), ports, *pools_[where], events));
      pollers_[where]->add(*engines_.back(), Poller::TimeBase::attended);
      const bool leader =
          std::find(assigned.threads.begin(), assigned.threads.end(), 0U) != assigned.threads.end();
      engines_at_[server].push_back({engines_.back().get(), pollers_[where].get(), leader});
    }
  }
}

void EmbeddedCluster::connect_fabric() {
  std::vector<Poller*> pollers;
  for (const auto& poller : pollers_) pollers.push_back(poller.get());
  fabric_->connect(
      [this](bcube::ServerId server, std::uint16_t queue) -> Poller& {
        return *engines_at_[server][queue].poller;
      },
      pollers);
}

void EmbeddedCluster::set_checksums(bool send, bool demand) {
  std::vector<EngineAt> all;
  for (const auto& of_server : engines_at_)
    all.insert(all.end(), of_server.begin(), of_server.end());
  on_each(all, [=](const EngineAt& at) { at.engine->set_checksums(send, demand); });
}

// The order matters: every sender must seal before a receiver demands it, and every receiver must
// look before a frame may be damaged. Frames that are on their way without a checksum when the
// demand begins are dropped and sent again.
void EmbeddedCluster::demand_checksums() {
  set_checksums(true, false);
  set_checksums(true, true);
}

std::uint64_t EmbeddedCluster::pool_bytes() const {
  std::uint64_t bytes = fabric_->pool_bytes();
  for (const auto& pool : pools_) bytes += pool->bytes();
  return bytes;
}

}  // namespace gradcube::dataplane
