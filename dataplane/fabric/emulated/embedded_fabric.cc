#include "dataplane/fabric/emulated/embedded_fabric.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <rte_ether.h>
#include <stdexcept>

#include "bcube_forwarding/neighbours.h"

namespace gradcube::dataplane {

namespace {

// Duplicated and damaged frames are rare and leave soon.
constexpr std::uint32_t kClones = (1U << 11) - 1;
constexpr std::uint32_t kCloneCache = 32;

// A prime larger than any fabric's count of switches: seed s and switch i do not meet seed s + 1
// and switch j.
constexpr std::uint64_t kSeedStride = 1'000'003;

}  // namespace

PacketPoolOptions clone_pool(std::uint32_t mtu) {
  return {.name = "clones",
          .count = kClones,
          .frame_bytes = mtu + RTE_ETHER_HDR_LEN,
          .cache = kCloneCache};
}

std::uint64_t switch_seed(std::uint64_t fabric_seed, std::size_t switch_number) {
  return fabric_seed * kSeedStride + switch_number;
}

EmbeddedFabric::EmbeddedFabric(const EmbeddedFabricOptions& options)
    : space_(options.space), servers_(options.servers), clones_(options.clones) {
  assert(!servers_.empty() && std::ranges::is_sorted(servers_, std::ranges::less_equal()));
  assert(std::ranges::all_of(servers_, [this](auto server) { return space_.contains(server); }));
  assert(options.levels.empty() || options.levels.size() == space_.levels());
  make_ports(options);
  make_switches(options);
}

bool EmbeddedFabric::has(bcube::ServerId server) const {
  return std::binary_search(servers_.begin(), servers_.end(), server);
}

std::size_t EmbeddedFabric::index_of(bcube::ServerId server) const {
  const auto found = std::lower_bound(servers_.begin(), servers_.end(), server);
  if (found == servers_.end() || *found != server) {
    throw std::invalid_argument("server " + std::to_string(server) +
                                " has no ports in this fabric");
  }
  return static_cast<std::size_t>(found - servers_.begin());
}

std::vector<Port*> EmbeddedFabric::ports(bcube::ServerId server) {
  std::vector<Port*> ports;
  for (const auto& port : ports_.at(index_of(server))) ports.push_back(port.get());
  return ports;
}

RingPort& EmbeddedFabric::port(bcube::ServerId server, unsigned number) {
  return *ports_.at(index_of(server)).at(number);
}

const RingPort& EmbeddedFabric::port(bcube::ServerId server, unsigned number) const {
  return *ports_.at(index_of(server)).at(number);
}

// A switch frees what it holds with itself, and so does a port with its rings.
void EmbeddedFabric::discard_packets() {
  links_.clear();
  switches_.clear();
  ports_.clear();
}

void EmbeddedFabric::make_ports(const EmbeddedFabricOptions& options) {
  for (const bcube::ServerId server : servers_) {
    auto& of_server = ports_.emplace_back();
    const auto own = options.own_ports.find(server);
    for (unsigned number = 0; number < space_.ports(server); ++number) {
      RingPortOptions port = options.port;
      if (own != options.own_ports.end()) {
        port.uplink_depth = own->second.uplink_depth;
      } else if (!options.levels.empty()) {
        port.uplink_depth = options.levels[space_.level_of_port(number)].uplink_depth;
      }
      of_server.push_back(std::make_unique<RingPort>(port));
    }
  }
}

void EmbeddedFabric::make_switches(const EmbeddedFabricOptions& options) {
  EmulatedSwitchOptions of_switch;
  of_switch.profile = options.link;
  of_switch.trunks = options.trunks;
  // Switches that do not exist are counted too: a switch's seed does not depend on which are here.
  std::size_t number = 0;
  for (const std::vector<bcube::ServerPort>& ends : bcube::joined_ports(space_)) {
    of_switch.seed = switch_seed(options.seed, number++);
    const bcube::ServerPort first = ends.front();
    if (options.has_switch_at && !options.has_switch_at(first.server, first.port)) continue;
    LinkProfile& link = of_switch.profile;
    if (!options.levels.empty()) {
      link.bits_per_second = options.levels[space_.level_of_port(first.port)].bits_per_second;
    }
    of_switch.shards = link.limited() ? std::uint16_t{1} : options.port.queues;
    make_switch(of_switch, options.own_ports, ends);
  }
}

// With ports for those of the ends that are here, if any is.
void EmbeddedFabric::make_switch(
    const EmulatedSwitchOptions& options,
    const std::map<bcube::ServerId, EmbeddedFabricOptions::Level>& own_ports,
    std::span<const bcube::ServerPort> ends) {
  std::vector<SwitchPort> ports;
  const unsigned level = space_.level_of_port(ends.front().port);
  for (const auto [server, number] : ends) {
    if (!has(server)) continue;
    links_.push_back(
        {server, level, number, switches_.size(), static_cast<std::uint16_t>(ports.size())});
    ports.push_back({&port(server, number),
                     {mac_number(bcube::embedded_link_address(number, server).mac)},
                     server,
                     own_ports.contains(server) ? own_ports.at(server).bits_per_second : 0});
  }
  if (ports.empty()) return;
  switches_.push_back({level, space_.joint_text(ends.front().server, ends.front().port),
                       std::make_unique<EmulatedSwitch>(options, ports, &clones_)});
}

void EmbeddedFabric::connect(const PollerOf& poller_of, const std::vector<Poller*>& shared) {
  assert(!shared.empty());
  std::span<const LinkAt> links = links_;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const std::uint16_t of_switch = switches_[i].fabric->ports();
    connect_switch(links.first(of_switch), poller_of, *shared[(i + 1) % shared.size()]);
    links = links.subspan(of_switch);
  }
}

// links: those of one switch.
void EmbeddedFabric::connect_switch(std::span<const LinkAt> links, const PollerOf& poller_of,
                                    Poller& shared) {
  const bcube::ServerId first = links.front().server;
  const std::uint16_t queues = port(first, links.front().server_port).queues();
  EmulatedSwitch& fabric = *switches_[links.front().switch_index].fabric;
  for (std::uint16_t shard = 0; shard < fabric.shards(); ++shard) {
    Poller& poller = fabric.shards() == 1 ? shared : poller_of(first, shard);
    poller.add(fabric.shard(shard), Poller::TimeBase::clock);
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
      if (queue % fabric.shards() != shard) continue;
      for (const LinkAt& link : links) {
        Poller& engine = poller_of(link.server, queue);
        const bool together = &engine == &poller;
        port(link.server, link.server_port)
            .set_doorbells(queue, together ? nullptr : &poller.doorbell(),
                           together ? nullptr : &engine.doorbell());
      }
    }
  }
}

std::size_t EmbeddedFabric::change_impairments(const std::vector<LinkAt>& links,
                                               const ImpairmentChange& change) {
  std::size_t count = 0;
  for (const LinkAt& link : links) {
    const Impairments before = impairments(link);
    const Impairments changed = change(before);
    if (changed == before) continue;
    ++count;
    if (changed.corrupt > 0 && !prepared_for_corruption_) {
      if (prepare_for_corruption_) prepare_for_corruption_();
      prepared_for_corruption_ = true;
    }
    switches_[link.switch_index].fabric->set_impairments(link.port, changed);
  }
  if (links.size() == links_.size()) impairments_ = change(impairments_);
  return count;
}

void EmbeddedFabric::set_impairments(const Impairments& impairments) {
  change_impairments(links_, [&](const Impairments&) { return impairments; });
}

Impairments EmbeddedFabric::impairments(const LinkAt& link) const {
  return switches_[link.switch_index].fabric->impairments(link.port);
}

}  // namespace gradcube::dataplane
