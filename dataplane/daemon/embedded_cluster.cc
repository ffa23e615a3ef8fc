#include "dataplane/daemon/embedded_cluster.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kClones = 2047;
constexpr std::uint32_t kMostPackets = (1U << 20) - 1;
constexpr unsigned kJobsAtOnce = 16;                  // that packet memory is reserved for
constexpr std::int64_t kSchedulerSlice = 10'000'000;  // ns
constexpr std::int64_t kPollerIteration = 100'000;    // ns
constexpr unsigned kLimitedWindow = 64;
constexpr unsigned kUnlimitedWindow = 16;  // segments per flow: what is on its way stays in cache
// Credit that a port grants, in bytes of its switch queue. More than the queue holds, because most
// of what is granted waits at its sender, for its turn or for its data; the senders' rotation keeps
// the queue itself short (tests/bench/schedule prints its peak).
constexpr double kCreditPerQueueByte = 2.5;
constexpr std::uint32_t kWireOverhead = 14 + 24;  // Ethernet; preamble, FCS and gap

unsigned flows_per_thread(const control::Topology& topology) {
  unsigned neighbours = 0;
  for (const control::Dimension& dimension : topology.dimensions())
    neighbours += dimension.radix - 1;
  return 2 * neighbours;
}

// Packets of one poller's pool: two mbufs for each segment on its way or waiting to be added.
std::uint32_t pool_count(const control::Topology& topology, unsigned threads_on_poller,
                         unsigned window) {
  const std::uint64_t segments =
      std::uint64_t{threads_on_poller} * flows_per_thread(topology) * window * kJobsAtOnce;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(2 * segments, 8191, kMostPackets));
}

std::uint64_t mac_number(const std::array<std::uint8_t, 6>& mac) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : mac) number = number << 8 | byte;
  return number;
}

}  // namespace

FabricParameters fabric_parameters(const control::ClusterSettings& settings,
                                   unsigned engines_per_server) {
  FabricParameters parameters;
  const std::uint32_t headers = protocol::kSegmentHeaderBytes - 14;  // within the MTU
  parameters.segment_bytes = static_cast<std::uint32_t>((settings.mtu - headers) / control::kUnitBytes *
                                                        control::kUnitBytes);

  // Pollers share this host's cores with the trainers: what looks like a loss may be a time slice.
  protocol::RecoverySettings& recovery = parameters.flows.recovery;
  recovery.initial_rtt = 1'000'000;
  recovery.probe_floor = kSchedulerSlice;
  recovery.rto_floor = 2 * kSchedulerSlice;
  recovery.rto_ceiling = 200'000'000;

  if (!settings.rate_bps.has_value()) {
    parameters.uplink_depth = 1024;
    parameters.credit_budget = protocol::CreditSettings::kUnlimited;
    parameters.window = kUnlimitedWindow;
    return parameters;
  }

  const auto rate = static_cast<double>(*settings.rate_bps);
  const auto bits_take = [rate](double bytes) {
    return static_cast<std::int64_t>(bytes * 8e9 / rate);
  };
  const std::int64_t frame_time = bits_take(settings.mtu + kWireOverhead);
  // Deep enough to bridge a turn of the poller, shallow enough to choose late what goes next.
  parameters.uplink_depth =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(kPollerIteration / frame_time, 3, 256));
  parameters.window = kLimitedWindow;
  parameters.credit_budget = static_cast<std::uint64_t>(
      kCreditPerQueueByte * static_cast<double>(settings.queue_bytes) / engines_per_server);
  parameters.flows.acknowledgement.every = 16;
  parameters.flows.acknowledgement.delay =
      std::clamp<std::int64_t>(8 * frame_time, protocol::kAcknowledgeDelay, 3'000'000);
  recovery.acknowledge_delay = parameters.flows.acknowledgement.delay;
  // A round trip through two full queues is no loss.
  recovery.probe_floor =
      std::max(recovery.probe_floor, 2 * bits_take(static_cast<double>(settings.queue_bytes)));
  recovery.rto_floor = 2 * recovery.probe_floor;
  return parameters;
}

unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores) {
  const control::Topology& topology = settings.topology;
  const unsigned threads = topology.servers() * topology.levels();
  const unsigned window = fabric_parameters(settings, 1).window;
  // One lcore may run all threads of its share of the servers: count it full, as often as there are
  // lcores.
  const unsigned per_poller = (threads + lcores - 1) / lcores + topology.levels();
  const std::uint64_t packets = std::uint64_t{pool_count(topology, per_poller, window)} * lcores;
  const std::uint64_t rings = std::uint64_t{threads} * topology.levels() * 2 * 2048 * sizeof(void*);
  const std::uint64_t clones = std::uint64_t{kClones} * (settings.mtu + 512);
  return static_cast<unsigned>((packets * 512 + rings + clones) * 5 / 4 / 1'000'000 + 64);
}

EmbeddedCluster::EmbeddedCluster(const control::ClusterSettings& settings,
                                 const std::vector<control::Lcore>& lcores, Clock& clock,
                                 const aggregation::Kernels& kernels, EventSink& events)
    : settings_(settings),
      plan_(control::make_plan("bml", settings.topology, "--topology")),
      kernels_(kernels),
      assignment_(control::Assignment::all_servers(plan_, lcores)),
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
  for (bcube::ServerId server = 0; server < plan_.servers(); ++server) {
    for (unsigned t = 0; t < plan_.threads(); ++t)
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
  PacketPoolOptions options;
  options.name = "clones";
  options.count = kClones;
  options.frame_bytes = settings_.mtu + 14;
  options.cache = 32;
  clones_ = std::make_unique<PacketPool>(options);
}

void EmbeddedCluster::make_ports() {
  RingPortOptions options;
  options.queues = static_cast<std::uint16_t>(assignment_.engines(0).size());
  options.mtu = settings_.mtu;
  options.uplink_depth = parameters_.uplink_depth;
  ports_.resize(plan_.servers());
  for (auto& of_server : ports_) {
    for (unsigned level = 0; level < plan_.space().levels(); ++level) {
      of_server.push_back(std::make_unique<RingPort>(options));
    }
  }
}

void EmbeddedCluster::make_engines(EventSink& events) {
  engines_at_.resize(plan_.servers());
  for (bcube::ServerId server = 0; server < plan_.servers(); ++server) {
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
      settings.segment_bytes = parameters_.segment_bytes;
      settings.credit_budget = parameters_.credit_budget;
      settings.window = parameters_.window;
      settings.flows = parameters_.flows;
      engines_.push_back(
          std::make_unique<Engine>(settings, plan_, ports, *pools_[where], events));
      pollers_[where]->add(*engines_.back(), Poller::TimeBase::attended);
      const bool leader =
          std::find(assigned.threads.begin(), assigned.threads.end(), 0U) != assigned.threads.end();
      engines_at_[server].push_back({engines_.back().get(), pollers_[where].get(), leader});
    }
  }
}

void EmbeddedCluster::make_switches() {
  for (unsigned level = 0; level < plan_.space().levels(); ++level) {
    for (bcube::ServerId server = 0; server < plan_.servers(); ++server) {
      if (plan_.space().digit(server, level) == 0) make_switch(level, server);
    }
  }
}

// The switch of `level` that joins the servers which differ from `first` in that digit alone.
void EmbeddedCluster::make_switch(unsigned level, bcube::ServerId first) {
  const bcube::AddressSpace& space = plan_.space();
  std::vector<SwitchPort> ports;
  std::vector<bcube::ServerId> servers;
  for (unsigned digit = 0; digit < space.radix(level); ++digit) {
    const bcube::ServerId server = space.with_digit(first, level, digit);
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
  options.seed = settings_.seed * 1'000'003 + switches_.size();

  std::string name = fmt::format("{}/[", level);
  const auto digits = space.digits(first);
  for (unsigned i = 0; i < space.levels(); ++i) {
    const bool joined = space.levels() - 1 - i == level;
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

// The order matters: no frame may be damaged before every receiver looks, and no receiver may look
// before every sender seals. What is on its way unsealed when the demand begins is dropped and sent
// again.
void EmbeddedCluster::set_impairments(const Impairments& impairments) {
  const bool damaging = impairments.corrupt > 0;
  if (damaging) {
    set_checksums(true, false);
    set_checksums(true, true);
  }
  for (const SwitchAt& at : switches_) at.fabric->set_impairments(impairments);
  impairments_ = impairments;
}

std::uint64_t EmbeddedCluster::pool_bytes() const {
  std::uint64_t bytes = clones_->bytes();
  for (const auto& pool : pools_) bytes += pool->bytes();
  return bytes;
}

}  // namespace gradcube::dataplane
