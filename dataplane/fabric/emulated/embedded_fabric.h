// The fabric of a BCube or a torus in this process: the ring ports of the servers, the emulated
// switches that join them, and what goes wrong on their links.
//
// A cable of a torus is a switch with two ports: what one end sends comes out at the other, with
// the rate, delay, queue and faults of a link.
//
// It may hold only some of the switches: the ports of others lead nowhere.
//
// It may hold only some of the servers. A switch then has ports for those alone. A frame
// for a server that is not there is dropped at the switch, which counts it as unknown_mac; a switch
// of which no server is there does not exist.
//
// Ownership: as fabric.h says; it also owns the pool that duplicates and damaged copies come from.
// The pollers that it is connected to hold references to its switches' shards, and its ports ring
// their doorbells: the pollers must outlive it, and must not run without it.
//
// Threads: as fabric.h says. Any one control thread at a time changes impairments, while pollers
// run or not. Any thread reads the counters of ports and switches.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMBEDDED_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMBEDDED_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/joined_ports.h"
#include "dataplane/fabric/emulated/emulated_switch.h"
#include "dataplane/fabric/emulated/impairments.h"
#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/fabric/fabric.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct EmbeddedFabricOptions {
  // All of them.
  bcube::AddressSpace space;
  // The servers of it whose ports exist, in ascending order; at least one.
  std::vector<bcube::ServerId> servers;
  // Which of the switches exist, by a server and its port that lead to it; none: all.
  std::function<bool(bcube::ServerId server, unsigned port)> has_switch_at{};
  // All ports and links are alike, but for what `levels` says.
  RingPortOptions port{};
  LinkProfile link{};
  // By level: how deep its ports' uplinks are, and the rate of its links (0: not limited). Empty:
  // all levels are as above.
  struct Level {
    std::uint32_t uplink_depth;
    std::uint64_t bits_per_second;
  };
  std::vector<Level> levels{};
  // What servers have for their ports in place of that.
  std::map<bcube::ServerId, Level> own_ports{};
  // Of a tree, of which the servers' one level of addresses is all that they see: the links that
  // those below a switch share, from the lowest level up. Places are the servers' numbers.
  std::vector<TrunkLevel> trunks{};
  // The pool that duplicates and damaged copies come from, which all pollers share. A copy takes a
  // whole frame.
  PacketPoolOptions clones{};
  // The same seed, options and frames give the same losses, duplicates and flipped bits.
  std::uint64_t seed = 1;
};

// The pool of clones that a fabric with this MTU gets unless it has wishes of its own.
PacketPoolOptions clone_pool(std::uint32_t mtu);

// The seed of one switch: different for each switch of a fabric and for each seed of a fabric.
std::uint64_t switch_seed(std::uint64_t fabric_seed, std::size_t switch_number);

class EmbeddedFabric final : public Fabric {
 public:
  // Throws std::runtime_error if DPDK has no memory left. Needs an Eal.
  explicit EmbeddedFabric(const EmbeddedFabricOptions& options);

  std::vector<Port*> ports(bcube::ServerId server) override;
  void discard_packets() override;

  // One of them; throws std::invalid_argument as ports() does.
  RingPort& port(bcube::ServerId server, unsigned number);
  const RingPort& port(bcube::ServerId server, unsigned number) const;

  const bcube::AddressSpace& space() const { return space_; }
  // Those that have ports here, in ascending order.
  const std::vector<bcube::ServerId>& servers() const { return servers_; }

  // The poller of the engine that has this queue of the server's ports.
  using PollerOf = std::function<Poller&(bcube::ServerId server, std::uint16_t queue)>;
  // Gives the switches' shards to pollers, and the ports doorbells where a ring's two ends lie on
  // different ones. A switch with a shard for each queue has them on the pollers of its first
  // server. One with a single shard lies on one of `shared`, which the switches take in turn. Call
  // it once, before any poller runs. `shared` is not empty.
  void connect(const PollerOf& poller_of, const std::vector<Poller*>& shared);

  struct SwitchAt {
    unsigned level;
    // "1/[*,0]": its level, and the digits its servers share; of a cable "1/[0,0]-[1,0]".
    std::string name;
    std::unique_ptr<EmulatedSwitch> fabric;
  };
  const std::vector<SwitchAt>& switches() const { return switches_; }

  // The link between a server and a switch. Its impairments concern the frames that the server
  // sends, and Impairments::up also those that it is sent.
  struct LinkAt {
    bcube::ServerId server;
    unsigned level;
    unsigned server_port;
    std::size_t switch_index;  // in switches()
    std::uint16_t port;        // of that switch
  };
  // By switch, and by port of the switch.
  const std::vector<LinkAt>& links() const { return links_; }

  // `prepare` is called once: before frames may be damaged for the first time. From then on frames
  // need a checksum, and it returns when every receiver demands one. If it throws, no frame is
  // damaged, and the next attempt calls it again.
  void on_corruption(std::function<void()> prepare) {
    prepare_for_corruption_ = std::move(prepare);
  }

  // Changes what the switches do to the frames of these links: `change` makes each link's new
  // impairments from those it has. How many links have others than before.
  using ImpairmentChange = std::function<Impairments(Impairments)>;
  std::size_t change_impairments(const std::vector<LinkAt>& links, const ImpairmentChange& change);
  // The same impairments for all links.
  void set_impairments(const Impairments& impairments);

  // The impairments set for all links together, and those of one link.
  const Impairments& impairments() const { return impairments_; }
  Impairments impairments(const LinkAt& link) const;

  // That of clones.
  std::uint64_t pool_bytes() const override { return clones_.bytes(); }

 private:
  bool has(bcube::ServerId server) const;
  std::size_t index_of(bcube::ServerId server) const;
  void make_ports(const EmbeddedFabricOptions& options);
  void make_switches(const EmbeddedFabricOptions& options);
  void make_switch(const EmulatedSwitchOptions& options,
                   const std::map<bcube::ServerId, EmbeddedFabricOptions::Level>& own_ports,
                   std::span<const bcube::ServerPort> ends);
  void connect_switch(std::span<const LinkAt> links, const PollerOf& poller_of, Poller& shared);

  bcube::AddressSpace space_;
  std::vector<bcube::ServerId> servers_;
  Impairments impairments_;
  std::function<void()> prepare_for_corruption_;
  bool prepared_for_corruption_ = false;

  PacketPool clones_;
  std::vector<std::vector<std::unique_ptr<RingPort>>> ports_;  // [index in servers_][number]
  std::vector<SwitchAt> switches_;
  std::vector<LinkAt> links_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_EMBEDDED_FABRIC_H_
