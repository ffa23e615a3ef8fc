#include "dataplane/daemon/fabric_sizing.h"

#include <algorithm>
#include <rte_ether.h>
#include <utility>

#include "control/base/units.h"
#include "control/plan/byte_range.h"
#include "dataplane/fabric/emulated/link.h"
#include "dataplane/fabric/frame_fields.h"
#include "protocol/time.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

namespace {

using protocol::kMicrosecond;
using protocol::kMillisecond;

static_assert(control::kLeastRate >= LinkClock::kMinRate,
              "every rate that the settings accept must be one that a link can have");

// --- Recovery. Pollers share this host's cores with the trainers, so a neighbour that is silent
// has most often lost its time slice and not a frame. The Linux scheduler gives slices of a few
// milliseconds; one that competes with another process comes back within about this time.
constexpr std::int64_t kSchedulerSlice = 10 * kMillisecond;
// Before the first sample: no ring is as slow as this, so the first resend never comes too early.
constexpr std::int64_t kInitialRtt = 1 * kMillisecond;
// Back-off ends here: a link that was out for long is used again this soon.
constexpr std::int64_t kRetransmissionCeiling = 200 * kMillisecond;

// --- Windows, in segments per flow.
// Without a rate: small enough that what is on its way stays in the caches.
constexpr unsigned kUnlimitedWindow = 16;
// With a rate: the link's queue and a poller's iteration fit into it (64 x 9 kB is 576 kB, 4.6 ms
// at 1 Gbit/s).
constexpr unsigned kLimitedWindow = 64;

// --- Credit. What a port grants, in bytes per byte of its switch queue. More than the queue holds,
// because most of what is granted waits at its sender, for its turn or for its data; the senders'
// rotation keeps the queue itself short (tests/bench/schedule prints its peak).
constexpr double kCreditPerQueueByte = 2.5;

// --- The uplink ring of a server. Without a rate: room for many bursts, a ring is never the limit.
constexpr std::uint32_t kUnlimitedUplink = 1024;
// With a rate: deep enough that the wire stays busy between two iterations of the poller, and
// shallow enough that the engine chooses late what goes next.
constexpr std::int64_t kPollerIteration = 100 * kMicrosecond;
constexpr std::int64_t kLeastUplink = 3;  // one frame on the wire, one next, one being made
constexpr std::int64_t kMostUplink = 256;

// --- Acknowledgements without a rate. What a sender waits for is acknowledged at once, and a
// window in use by the fourth segment. All else can wait for the next collective's segments to
// carry it.
constexpr std::int64_t kUnlimitedAcknowledgeDelay = 500 * kMicrosecond;

// --- Acknowledgements with a rate: one for this many segments, a quarter of a window, takes next
// to nothing of the reverse direction and leaves the sender three quarters of the window.
constexpr unsigned kSegmentsPerAcknowledgement = kLimitedWindow / 4;
// A frame that carries nothing else leaves when this many frames' time has passed without one that
// could carry the acknowledgement; at low rates the ceiling keeps it far below the probe's timer.
constexpr std::int64_t kFramesPerAcknowledgeDelay = 8;
constexpr std::int64_t kMostAcknowledgeDelay = 3 * kMillisecond;

// --- Packet memory.
// Jobs with full windows that packet memory is reserved for.
constexpr unsigned kJobsAtOnce = 16;
// Each segment takes a header mbuf and one that points into the trainer's memory.
constexpr unsigned kMbufsPerSegment = 2;
// Pool sizes of 2^k - 1 waste no memory (DPDK's rings). The least is several bursts for every port
// of a small cluster; the most is 512 MB of mbufs.
constexpr std::uint64_t kFewestPackets = (1U << 13) - 1;
constexpr std::uint64_t kMostPackets = (1U << 20) - 1;
// What a header mbuf takes: the mbuf, headroom and header of 128 bytes each, the mempool's own
// header and trailer, rounded up.
constexpr std::uint64_t kMbufBytes = 512;
// A ring of 1024 packets has 2048 entries: DPDK rounds up, and one entry stays empty.
constexpr std::uint64_t kRingEntries = 2048;
constexpr std::uint64_t kRingsPerQueue = 2;  // up and down
// EAL's heap loses some memory to alignment, and to elements at the ends of its pages.
constexpr std::uint64_t kHeapReserve = 4;    // one more byte for every so many
constexpr std::uint64_t kEalMegabytes = 64;  // what EAL itself and its per-lcore data take
constexpr std::uint64_t kMegabyte = 1'000'000;

std::uint64_t flows_per_thread(const control::Topology& topology) {
  std::uint64_t neighbours = 0;
  for (const control::Dimension& dimension : topology.dimensions()) {
    neighbours += dimension.radix - 1;
  }
  constexpr unsigned kStages = 2;
  return kStages * neighbours;
}

// The most hops that a frame may take: one for each level, and two more for a way around a failure.
// With one level all servers are neighbours.
unsigned longest_route(const control::Topology& topology) {
  constexpr unsigned kDetour = 2;
  if (topology.levels() == 1) return 1;
  return std::min(protocol::kMaxHops, topology.levels() + kDetour);
}

// The largest payload whose packet fits the MTU with the headers of the longest route, in whole
// units of the layout.
std::uint32_t segment_bytes(const control::Topology& topology, unsigned mtu) {
  const std::size_t headers =
      protocol::header_bytes(longest_route(topology), true) - RTE_ETHER_HDR_LEN;
  return static_cast<std::uint32_t>((mtu - headers) / control::kUnitBytes * control::kUnitBytes);
}

void tune_for_rate(const control::ClusterSettings& settings, unsigned engines_per_server,
                   FabricParameters& parameters) {
  const auto rate = static_cast<double>(*settings.rate_bps);
  const auto time_of = [rate](double bytes) {
    return static_cast<std::int64_t>(bytes * 8e9 / rate);
  };
  const std::int64_t frame_time = time_of(settings.mtu + RTE_ETHER_HDR_LEN + kWireOverheadBytes);
  parameters.uplink_depth = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(kPollerIteration / frame_time, kLeastUplink, kMostUplink));
  parameters.window = kLimitedWindow;
  parameters.credit_budget = static_cast<std::uint64_t>(
      kCreditPerQueueByte * static_cast<double>(settings.queue_bytes) / engines_per_server);
  parameters.flows.acknowledgement.every = kSegmentsPerAcknowledgement;
  parameters.flows.acknowledgement.delay = std::clamp<std::int64_t>(
      kFramesPerAcknowledgeDelay * frame_time, protocol::kAcknowledgeDelay, kMostAcknowledgeDelay);
  protocol::RecoverySettings& recovery = parameters.flows.recovery;
  recovery.acknowledge_delay = parameters.flows.acknowledgement.delay;
  // A round trip through two full queues is no loss.
  recovery.probe_floor =
      std::max(recovery.probe_floor, 2 * time_of(static_cast<double>(settings.queue_bytes)));
  recovery.rto_floor = 2 * recovery.probe_floor;
}

}  // namespace

FabricParameters fabric_parameters(const control::ClusterSettings& settings,
                                   unsigned engines_per_server) {
  FabricParameters parameters;
  parameters.segment_bytes = segment_bytes(settings.topology, settings.mtu);
  protocol::RecoverySettings& recovery = parameters.flows.recovery;
  recovery.initial_rtt = kInitialRtt;
  recovery.probe_floor = kSchedulerSlice;
  recovery.rto_floor = 2 * kSchedulerSlice;
  recovery.rto_ceiling = kRetransmissionCeiling;
  if (settings.rate_bps.has_value()) {
    tune_for_rate(settings, engines_per_server, parameters);
  } else {
    parameters.uplink_depth = kUnlimitedUplink;
    parameters.credit_budget = protocol::CreditSettings::kUnlimited;
    parameters.window = kUnlimitedWindow;
    parameters.flows.acknowledgement.delay = kUnlimitedAcknowledgeDelay;
    recovery.acknowledge_delay = kUnlimitedAcknowledgeDelay;
  }
  return parameters;
}

std::uint32_t pool_count(const control::Topology& topology, unsigned threads_on_poller,
                         unsigned window) {
  const std::uint64_t segments =
      threads_on_poller * flows_per_thread(topology) * window * kJobsAtOnce;
  return static_cast<std::uint32_t>(
      std::clamp(kMbufsPerSegment * segments, kFewestPackets, kMostPackets));
}

EmbeddedFabricOptions embedded_fabric_options(const control::ClusterSettings& settings,
                                              const FabricParameters& parameters,
                                              unsigned engines_per_server,
                                              std::vector<bcube::ServerId> servers) {
  EmbeddedFabricOptions options{.space = settings.topology.space(), .servers = std::move(servers)};
  options.port.queues = static_cast<std::uint16_t>(engines_per_server);
  options.port.mtu = settings.mtu;
  options.port.uplink_depth = parameters.uplink_depth;
  if (settings.rate_bps.has_value()) {
    options.link.bits_per_second = *settings.rate_bps;
    options.link.queue_bytes = settings.queue_bytes;
    options.link.mark_bytes = settings.ecn_threshold();
  }
  options.link.delay = settings.delay_ns;
  options.clones = clone_pool(settings.mtu);
  options.seed = settings.seed;
  return options;
}

unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores) {
  const control::Topology& topology = settings.topology;
  const unsigned threads = topology.servers() * topology.levels();
  const unsigned window = fabric_parameters(settings, 1).window;
  // The threads are dealt out by server, so a poller may get one server's more than its share.
  const unsigned per_poller = (threads + lcores - 1) / lcores + topology.levels();
  const std::uint64_t packets = std::uint64_t{pool_count(topology, per_poller, window)} * lcores;
  const std::uint64_t rings =
      std::uint64_t{threads} * topology.levels() * kRingsPerQueue * kRingEntries * sizeof(void*);
  const PacketPoolOptions clones = clone_pool(settings.mtu);
  const std::uint64_t clone_bytes = clones.count * (clones.frame_bytes + kMbufBytes);
  const std::uint64_t bytes = packets * kMbufBytes + rings + clone_bytes;
  return static_cast<unsigned>((bytes + bytes / kHeapReserve) / kMegabyte + kEalMegabytes);
}

}  // namespace gradcube::dataplane
