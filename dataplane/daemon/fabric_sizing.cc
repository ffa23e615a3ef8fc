#include "dataplane/daemon/fabric_sizing.h"

#include <algorithm>
#include <rte_ether.h>

#include "control/base/units.h"
#include "control/plan/base/byte_range.h"
#include "dataplane/daemon/engine_assignment.h"
#include "dataplane/engine/flows/unasked_room.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/link_clock.h"
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
// Without a rate: so few bytes that what is on its way stays in the caches, and among segments of
// this length or shorter ones so many that an iteration of the poller costs each of them little.
constexpr std::uint32_t kUnlimitedWindowBytes = 72 * 1024;
constexpr std::uint32_t kFewestUnlimited = 8;
constexpr std::uint32_t kMostUnlimited = 16;
// With a rate: the link's queue and a poller's iteration fit into it (64 x 9 kB is 576 kB, 4.6 ms
// at 1 Gbit/s).
constexpr unsigned kLimitedWindow = 64;

// --- Short pieces. Without a rate a packet costs the more the more there are, so that as many
// pieces as fit share a segment. With a rate they may share one that need not wait for credit; a
// longer one takes longer to pass, and the next step waits for all of it.
constexpr std::uint32_t kLimitedBlock = 512;
static_assert(kLimitedBlock + protocol::header_bytes(protocol::FrameType::segment, 1, true) <=
              protocol::SendWindow::kUnaskedBytes);

// --- Credit. A port grants what its switch queue holds beside what may come unasked, from all
// engines of all neighbours at once: a server has no more than threads. So the queue does not
// overflow. But half of the queue is granted also where neighbours are many and it is short.
std::uint64_t queued_credit(const control::ClusterSettings& settings) {
  const std::uint64_t of_one = threads_of_server(settings) * UnaskedRoom::kBytes;
  std::uint64_t unasked = 0;
  const bcube::AddressSpace& space = settings.topology.space();
  for (unsigned level = 0; level < space.levels(); ++level) {
    // Of neighbours. What has several ports on the switch sends by each of them.
    std::uint64_t ways = space.cabled() ? 1 : space.radix(level) - 1;
    for (const control::PortGroup& own : settings.rates.own_ports()) ways += own.ports - 1;
    unasked = std::max(unasked, ways * of_one);
  }
  return settings.queue_bytes - std::min(unasked, settings.queue_bytes / 2);
}
// On a slow link a queue holds what passes in a tenth of a second. Granting all of it lets servers
// fall out of step by as much, and links are idle for it at the begin and at the end. So a port
// grants what it passes in a shorter time, but so many segments that all senders have their round
// trips filled.
constexpr std::int64_t kLongestCredit = 50 * kMillisecond;
constexpr std::uint64_t kFewestGranted = 14;

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

// --- Greetings. Three intervals find a link that is down. Where pollers share cores, that is a
// quarter of a second, far more than a time slice, so that a neighbour that waits for its core is
// not taken for a link. A poller that never waits for one need not wait so long. There are at most
// so many greetings in a second on a host.
constexpr std::int64_t kGreetingInterval = 80 * kMillisecond;
constexpr std::int64_t kPinnedGreetingInterval = 10 * kMillisecond;
constexpr std::int64_t kGreetingsPerSecond = 4000;

// Whether each poller has a core to itself: a server on a host of its own, whose pollers were told
// to spin for ever. It follows from settings that all daemons have in common, as the interval is
// part of their fingerprint; how many cores a host has is not.
bool are_pinned(const control::ClusterSettings& settings, Payloads payloads) {
  return payloads == Payloads::copied && settings.fabric == control::FabricKind::embedded &&
         settings.idle == control::Idle::spin;
}

Nanoseconds greeting_interval(const control::ClusterSettings& settings, Payloads payloads) {
  if (settings.greeting_ns.has_value()) return static_cast<Nanoseconds>(*settings.greeting_ns);
  std::int64_t greetings = settings.topology.space().addresses_one_digit_away();
  std::int64_t least = kPinnedGreetingInterval;
  if (!are_pinned(settings, payloads)) {
    greetings *= settings.topology.servers();
    least = kGreetingInterval;
  }
  return std::max(least, greetings * 1000 * kMillisecond / kGreetingsPerSecond);
}

// --- Padded greetings. They take a sixteenth of the slowest link at most, and few leave a port at
// once. Where there are so many servers that intervals are long, they do not wait for the next one.
constexpr std::int64_t kSixteenths = 16;
constexpr std::int64_t kMostPaddedAtOnce = 4;
constexpr Nanoseconds kLongestPaddedTime = kGreetingInterval;

// --- Silent daemons. A link that is down is found in three to four intervals by the server whose
// link it is, and in as many by a relay further on. A daemon must not be given up before its
// messages go around both, so it may be silent for twelve, within what a trainer would wait.
constexpr Nanoseconds kIntervalsOfSilence = 12;
constexpr Nanoseconds kShortestSilence = 1000 * kMillisecond;
constexpr Nanoseconds kLongestSilence = 10'000 * kMillisecond;

// --- Path probes. Flows live for seconds, and what their links carry is averaged over 50 ms. An
// engine probes 8 servers in an interval at most (path_prober.h), over a few paths each; all
// servers share this host's cores.
constexpr std::int64_t kProbingInterval = 100 * kMillisecond;
constexpr std::int64_t kProbingPerServer = 2 * kMillisecond;

Nanoseconds probing_interval(const control::ClusterSettings& settings) {
  if (!settings.rates.limited()) return 0;
  if (settings.probing_ns.has_value()) return static_cast<Nanoseconds>(*settings.probing_ns);
  return std::max(kProbingInterval, kProbingPerServer * settings.topology.servers());
}

// The largest payload whose packet fits the MTU with the headers of the longest route, in whole
// units of the layout.
std::uint32_t segment_bytes(const control::ClusterSettings& s, bool authenticated) {
  const unsigned hops = bcube::most_hops(s.topology.space());
  const std::size_t headers =
      protocol::header_bytes(protocol::FrameType::segment, hops, authenticated) - RTE_ETHER_HDR_LEN;
  return static_cast<std::uint32_t>((s.mtu_of_frames() - headers) / control::kUnitBytes *
                                    control::kUnitBytes);
}

std::int64_t time_of(double bytes, std::uint64_t rate) {
  return static_cast<std::int64_t>(bytes * 8e9 / static_cast<double>(rate));
}

std::uint64_t credit_budget(const control::ClusterSettings& settings, std::uint64_t rate,
                            std::uint32_t segment_bytes) {
  const auto passed = static_cast<std::uint64_t>(static_cast<double>(rate) / 8e9 *
                                                 static_cast<double>(kLongestCredit));
  return std::min(queued_credit(settings), std::max(passed, kFewestGranted * segment_bytes));
}

std::int64_t frame_time(const control::ClusterSettings& settings, std::uint64_t rate) {
  return time_of(settings.mtu_of_frames() + RTE_ETHER_HDR_LEN + kWireOverheadBytes, rate);
}

// What a flow through a port of the level has at least: it may end at a port with a rate of its
// own, and on a tree it may pass uplinks, whose queues are as many times a port's as servers share
// them.
std::uint64_t narrowest(const control::ClusterSettings& settings, unsigned level) {
  const control::Topology rated = settings.rated_topology();
  std::uint64_t least = rated.dimensions()[level].rate_bps;
  for (const control::PortGroup& own : settings.rates.own_ports()) {
    least = std::min(least, own.rate_bps);
  }
  for (unsigned above = 1; rated.is_tree() && above < rated.link_levels(); ++above) {
    least = std::min(least, static_cast<std::uint64_t>(rated.share_bps(above)));
  }
  return least;
}

// What flows get in a round, by a port's own rate.
void tune_credit(const control::ClusterSettings& settings, std::uint64_t rate,
                 protocol::CreditSettings& credit) {
  credit.budget_bytes = credit_budget(settings, rate, credit.segment_bytes);
  // What the port passes in a poller's iteration, which has one round at most.
  credit.round_bytes = static_cast<std::uint64_t>(static_cast<double>(rate) / 8e9 *
                                                  static_cast<double>(kPollerIteration));
}

// What a port's own rate decides: its uplink, and what its flows get in a round.
void tune_ports(const control::ClusterSettings& settings, FabricParameters& parameters) {
  for (unsigned level = 0; level < settings.topology.levels(); ++level) {
    const std::uint64_t rate = settings.rates.of(level);
    parameters.uplink_depth[level] = uplink_depth(settings, rate);
    tune_credit(settings, rate, parameters.credit[level]);
    // What waits in a full queue is on its way. If it did not count, more would be granted than the
    // queue holds.
    protocol::Nanoseconds& lease = parameters.credit[level].lease;
    lease = std::max(
        lease, 2 * time_of(static_cast<double>(settings.queue_bytes), narrowest(settings, level)));
  }
}

std::uint64_t slowest(const control::ClusterSettings& settings) {
  std::uint64_t rate = narrowest(settings, 0);
  for (unsigned level = 1; level < settings.topology.levels(); ++level) {
    rate = std::min(rate, narrowest(settings, level));
  }
  return rate;
}

// A sixteenth of the time, in sixteenths of a frame's time.
unsigned padded_sixteenths(const control::ClusterSettings& settings, Nanoseconds time) {
  std::int64_t most = kSixteenths * kMostPaddedAtOnce;
  if (settings.rates.limited()) {
    most = std::clamp<std::int64_t>(time / frame_time(settings, slowest(settings)), 1, most);
  }
  return static_cast<unsigned>(most);
}

// What flows have in common. Where rates differ, it follows from the slowest: a relay or a detour
// can lead any flow over a slow link, where a timer of a fast one would take waiting for loss. A
// sender must know how long a receiver delays an acknowledgement, so there is one delay. It costs
// fast links nothing: in a stream every so many segments bring one, whatever the time.
void tune_flows(const control::ClusterSettings& settings, FabricParameters& parameters) {
  const std::uint64_t rate = slowest(settings);
  parameters.block_bytes = kLimitedBlock;
  parameters.window = kLimitedWindow;
  parameters.flows.acknowledgement.every = kSegmentsPerAcknowledgement;
  parameters.flows.acknowledgement.delay =
      std::clamp<std::int64_t>(kFramesPerAcknowledgeDelay * frame_time(settings, rate),
                               protocol::kAcknowledgeDelay, kMostAcknowledgeDelay);
  protocol::RecoverySettings& recovery = parameters.flows.recovery;
  recovery.acknowledge_delay = parameters.flows.acknowledgement.delay;
  // A round trip through two full queues is no loss.
  recovery.probe_floor =
      std::max(recovery.probe_floor, 2 * time_of(static_cast<double>(settings.queue_bytes), rate));
  recovery.rto_floor = 2 * recovery.probe_floor;
}

}  // namespace

std::uint32_t uplink_depth(const control::ClusterSettings& settings, std::uint64_t rate) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      kPollerIteration / frame_time(settings, rate), kLeastUplink, kMostUplink));
}

FabricParameters fabric_parameters(const control::ClusterSettings& settings, Payloads payloads) {
  FabricParameters parameters;
  const bool authenticated =
      payloads == Payloads::copied && settings.authentication == control::Authentication::key;
  parameters.segment_bytes = segment_bytes(settings, authenticated);
  protocol::CreditSettings credit;
  credit.segment_bytes = static_cast<std::uint32_t>(
      parameters.segment_bytes +
      protocol::header_bytes(protocol::FrameType::segment, 1, authenticated));
  parameters.credit.assign(settings.topology.levels(), credit);
  parameters.uplink_depth.assign(settings.topology.levels(), kUnlimitedUplink);
  protocol::RecoverySettings& recovery = parameters.flows.recovery;
  recovery.initial_rtt = kInitialRtt;
  recovery.probe_floor = kSchedulerSlice;
  recovery.rto_floor = 2 * kSchedulerSlice;
  recovery.rto_ceiling = kRetransmissionCeiling;
  if (settings.rates.limited()) {
    tune_ports(settings, parameters);
    tune_flows(settings, parameters);
  } else {
    parameters.block_bytes = parameters.segment_bytes;
    parameters.window = std::clamp(kUnlimitedWindowBytes / parameters.segment_bytes,
                                   kFewestUnlimited, kMostUnlimited);
    if (settings.fabric == control::FabricKind::udp) {
      // Others use the network, too.
      for (protocol::CreditSettings& port : parameters.credit) {
        port.window_that_shrinks = parameters.window;
        port.packets_of_segment = (settings.mtu_of_frames() + settings.mtu - 1) / settings.mtu;
      }
    }
    parameters.flows.acknowledgement.delay = kUnlimitedAcknowledgeDelay;
    recovery.acknowledge_delay = kUnlimitedAcknowledgeDelay;
  }
  parameters.greeting_interval = greeting_interval(settings, payloads);
  parameters.padded_time = std::min<Nanoseconds>(parameters.greeting_interval, kLongestPaddedTime);
  parameters.padded_sixteenths = padded_sixteenths(settings, parameters.padded_time);
  parameters.silent_after = std::clamp(kIntervalsOfSilence * parameters.greeting_interval,
                                       kShortestSilence, kLongestSilence);
  parameters.probing_interval = probing_interval(settings);
  return parameters;
}

std::vector<protocol::CreditSettings> credit_of(const control::ClusterSettings& settings,
                                                const FabricParameters& parameters,
                                                bcube::ServerId server) {
  std::vector<protocol::CreditSettings> credit = parameters.credit;
  for (unsigned level = 0; settings.rates.limited() && level < credit.size(); ++level) {
    tune_credit(settings, settings.rates.of_port(server, level), credit[level]);
  }
  return credit;
}

}  // namespace gradcube::dataplane
