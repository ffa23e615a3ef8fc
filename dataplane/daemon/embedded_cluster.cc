#include "dataplane/daemon/embedded_cluster.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"

namespace gradcube::dataplane {

namespace {

std::uint64_t mac_number(const std::array<std::uint8_t, 6>& mac) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : mac) number = number << 8 | byte;
  return number;
}

}  // namespace

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
  make_ports();
  make_engines(events);
  make_switches();
  set_impairments({settings.loss, settings.duplicate, settings.reorder, settings.corrupt, true});
}

EmbeddedCluster::~EmbeddedCluster() = default;

// A switch frees what it holds with itself, and so does a port with its rings.
void EmbeddedCluster::discard_packets() {
  switches_.clear();
  ports_.clear();
}

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
  const ClonePool clones = clone_pool(settings_);
  PacketPoolOptions options;
  options.name = "clones";
  options.count = clones.count;
  options.frame_bytes = clones.frame_bytes;
  options.cache = clones.cache;
  clones_ = std::make_unique<PacketPool>(options);
}

void EmbeddedCluster::make_ports() {
  RingPortOptions options;
  options.queues = static_cast<std::uint16_t>(assignment_.engines(0).size());
  options.mtu = settings_.mtu;
  options.uplink_depth = parameters_.uplink_depth;
  ports_.resize(settings_.topology.servers());
  for (auto& of_server : ports_) {
    for (unsigned level = 0; level < space().levels(); ++level) {
      of_server.push_back(std::make_unique<RingPort>(options));
    }
  }
}

void EmbeddedCluster::make_engines(EventSink& events) {
  engines_at_.resize(settings_.topology.servers());
  for (bcube::ServerId server = 0; server < settings_.topology.servers(); ++server) {
    std::vector<Port*> ports;
    for (const auto& port : ports_[server]) ports.push_back(port.get());
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

void EmbeddedCluster::make_switches() {
  for (unsigned level = 0; level < space().levels(); ++level) {
    for (bcube::ServerId server = 0; server < settings_.topology.servers(); ++server) {
      if (space().digit(server, level) == 0) make_switch(level, server);
    }
  }
}

// The switch of `level` that joins the servers which differ from `first` in that digit alone.
void EmbeddedCluster::make_switch(unsigned level, bcube::ServerId first) {
  const bcube::AddressSpace& addresses = space();
  std::vector<SwitchPort> ports;
  std::vector<bcube::ServerId> servers;
  for (unsigned digit = 0; digit < addresses.radix(level); ++digit) {
    const bcube::ServerId server = addresses.with_digit(first, level, digit);
    links_.push_back({server, level, switches_.size(), static_cast<std::uint16_t>(digit)});
    servers.push_back(server);
    ports.push_back({ports_[server][level].get(),
                     {mac_number(bcube::embedded_link_address(level, server).mac)}});
  }
  EmulatedSwitchOptions options;
  if (settings_.rate_bps.has_value()) {
    options.profile.bits_per_second = *settings_.rate_bps;
    options.profile.queue_bytes = settings_.queue_bytes;
    options.profile.mark_bytes = settings_.ecn_threshold();
  }
  options.profile.delay = settings_.delay_ns;
  options.shards = options.profile.limited() ? std::uint16_t{1} : ports.front().port->queues();
  options.seed = switch_seed(settings_.seed, switches_.size());

  std::string name = fmt::format("{}/[", level);
  const auto digits = addresses.digits(first);
  for (unsigned i = 0; i < addresses.levels(); ++i) {
    const bool joined = addresses.levels() - 1 - i == level;
    name += fmt::format("{}{}", i == 0 ? "" : ",",
                        joined ? std::string("*") : std::to_string(digits[i]));
  }
  switches_.push_back(
      {level, name + "]", std::make_unique<EmulatedSwitch>(options, ports, clones_.get())});
  connect(*switches_.back().fabric, level, servers);
}

// Puts the switch's shards on pollers, and doorbells where a ring's two ends lie on different ones.
void EmbeddedCluster::connect(EmulatedSwitch& fabric, unsigned level,
                              const std::vector<bcube::ServerId>& servers) {
  const std::uint16_t queues = ports_[servers.front()][level]->queues();
  for (std::uint16_t shard = 0; shard < fabric.shards(); ++shard) {
    Poller& poller = fabric.shards() == 1 ? *pollers_[switches_.size() % pollers_.size()]
                                          : poller_of(servers.front(), shard);
    poller.add(fabric.shard(shard), Poller::TimeBase::clock);
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
      if (queue % fabric.shards() != shard) continue;
      for (const bcube::ServerId server : servers) {
        Poller& engine = poller_of(server, queue);
        const bool together = &engine == &poller;
        ports_[server][level]->set_doorbells(queue, together ? nullptr : &poller.doorbell(),
                                             together ? nullptr : &engine.doorbell());
      }
    }
  }
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
  if (checksums_demanded_) return;
  set_checksums(true, false);
  set_checksums(true, true);
  checksums_demanded_ = true;
}

void EmbeddedCluster::change_impairments(const std::vector<LinkAt>& links,
                                         const ImpairmentChange& change) {
  for (const LinkAt& link : links) {
    const Impairments changed = change(impairments(link));
    if (changed.corrupt > 0) demand_checksums();
    switches_[link.switch_index].fabric->set_impairments(link.port, changed);
  }
  if (links.size() == links_.size()) impairments_ = change(impairments_);
}

void EmbeddedCluster::set_impairments(const Impairments& impairments) {
  change_impairments(links_, [&](const Impairments&) { return impairments; });
}

Impairments EmbeddedCluster::impairments(const LinkAt& link) const {
  return switches_[link.switch_index].fabric->impairments(link.port);
}

std::uint64_t EmbeddedCluster::pool_bytes() const {
  std::uint64_t bytes = clones_->bytes();
  for (const auto& pool : pools_) bytes += pool->bytes();
  return bytes;
}

}  // namespace gradcube::dataplane
