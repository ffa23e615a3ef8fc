#include "dataplane/daemon/packet_sizing.h"

#include <algorithm>
#include <rte_ether.h>

#include "control/jobs/join_request.h"
#include "control/plan/base/topology.h"
#include "dataplane/daemon/engine_assignment.h"
#include "dataplane/engine/flows/relay_queue.h"
#include "dataplane/engine/hand_over.h"
#include "dataplane/engine/message_inbox.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"
#include "dataplane/fabric/port.h"
#include "dataplane/fabric/udp/frame_assembly.h"
#include "dataplane/host/memory_units.h"
#include "dataplane/host/packet_memory.h"

namespace gradcube::dataplane {

namespace {

// Jobs with full windows that there is packet memory for. A job takes at most half of what is free
// (packet_offer.h), so all jobs that a server accepts have full windows if there is memory for
// twice as many.
constexpr std::uint64_t kJobsAtOnce = 2 * control::kMaxJobs;
// A poller's share of what is reserved for segments, unless the settings say how much it is. The
// most is 480 MB: untouched memory costs nothing, but a host must have what jobs can touch.
constexpr std::uint64_t kFewestPackets = 1U << 13;
constexpr std::uint64_t kMostPackets = 1U << 20;
// Acknowledgements and probes lie in rings and queues only. When their pool is empty they leave a
// little later, so it need not hold all that the queues could: this many for each port.
constexpr std::uint64_t kAnswersPerPort = 64;
constexpr std::uint64_t kFewestAnswers = (1U << 13) - 1;
constexpr std::uint64_t kMostAnswers = (1U << 16) - 1;
// A mempool's cache of 256 packets holds at most half as many again.
constexpr std::uint64_t kIdlePerLcore = 384;
// What a header mbuf takes: 128 bytes each of mbuf, headroom and headers, and the mempool's header
// of 64. Nine fit into a page.
constexpr std::uint64_t kMbufBytes = 4096 / 9 + 1;
// What a mempool takes for each packet that it may have (a ring's entry, rounded up to a power of
// two) and for the caches of its lcores.
constexpr std::uint64_t kPoolBytesPerPacket = 2 * sizeof(void*);
constexpr std::uint64_t kPoolBytes = 2'000'000;
// A ring of 1024 packets has 2048 entries: DPDK rounds up, and one entry stays empty.
constexpr std::uint64_t kRingEntries = 2048;
constexpr std::uint64_t kRingsPerQueue = 4;  // up and down, in each lane
// With copied payloads a packet holds a whole frame, and a poller's share of what is reserved takes
// this much at most, unless the settings say how much it is.
constexpr std::uint64_t kMostCopiedBytes = 256'000'000;
// Messages leave as soon as there is room in a port. Beyond this many frames they are lost, and
// sent again by those who wait for an answer.
constexpr std::uint32_t kMessageFrames = 511;

std::uint64_t flows_per_thread(const control::Topology& topology) {
  constexpr unsigned kStages = 2;
  return kStages * topology.space().addresses_one_digit_away();
}

// At how many pollers the frames of an engine may come in.
unsigned receivers(unsigned pollers, Steering steering) {
  return steering == Steering::uncertain ? pollers : 1;
}

}  // namespace

PacketSizes packet_sizes(const control::ClusterSettings& settings, unsigned pollers,
                         unsigned threads_on_poller, Payloads payloads, Steering steering) {
  const control::Topology& topology = settings.topology;
  const std::uint64_t window = fabric_parameters(settings).window;
  const std::uint64_t of_a_job =
      kPacketsPerSegment * threads_on_poller * flows_per_thread(topology) * window;
  std::uint64_t packets = std::clamp(of_a_job * kJobsAtOnce, kFewestPackets, kMostPackets);
  std::uint64_t bytes_of_packet = kMbufBytes;
  if (payloads == Payloads::copied) {
    const std::uint64_t frame = kMbufBytes + full_frame_bytes(settings.mtu_of_frames());
    bytes_of_packet += receivers(pollers, steering) * frame / kPacketsPerSegment;
    packets = std::min(packets, kMostCopiedBytes / bytes_of_packet);
  }
  if (settings.packet_memory_bytes.has_value()) {
    packets = *settings.packet_memory_bytes / pollers / bytes_of_packet;
  }
  const std::uint64_t ports = std::uint64_t{threads_on_poller} * topology.ports();
  PacketSizes sizes;
  sizes.segments = static_cast<std::uint32_t>(packets / kPacketsPerSegment);
  sizes.answers =
      static_cast<std::uint32_t>(std::clamp(ports * kAnswersPerPort, kFewestAnswers, kMostAnswers));
  // The pollers, and the main thread.
  sizes.idle = static_cast<std::uint32_t>((pollers + 1) * kIdlePerLcore);
  if (payloads == Payloads::copied) {
    // Of the one engine that a server has on a poller.
    sizes.received_beside = static_cast<std::uint32_t>(
        MessageInbox::kCapacity +
        topology.ports() * (RelayQueue::kCapacity + Port::kMostPerIteration) +
        (receivers(pollers, steering) - 1) * HandOver::kDepth);
    if (settings.mtu_of_frames() > settings.mtu) {
      sizes.received_beside += topology.space().addresses_one_digit_away() * FrameAssembly::kAtOnce;
    }
  }
  return sizes;
}

std::uint32_t full_frame_bytes(unsigned mtu) { return mtu + RTE_ETHER_HDR_LEN; }

PacketPoolOptions message_pool(unsigned mtu) {
  return {.name = "messages",
          .count = kMessageFrames,
          .frame_bytes = full_frame_bytes(mtu),
          .cache = 0};
}

unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores,
                          Payloads payloads, Steering steering) {
  const control::Topology& topology = settings.topology;
  const unsigned servers = payloads == Payloads::copied ? 1 : topology.servers();
  const unsigned of_one = threads_of_server(settings);
  const unsigned threads = servers * of_one;
  // They are dealt out by server, so a poller may get one server's more than its share.
  const unsigned per_poller = (threads + lcores - 1) / lcores + of_one;
  const PacketSizes sizes = packet_sizes(settings, lcores, per_poller, payloads, steering);
  const std::uint64_t packets =
      lcores * (std::uint64_t{kPacketsPerSegment} * sizes.segments + sizes.idle + sizes.answers);
  const std::uint64_t rings =
      std::uint64_t{threads} * topology.ports() * kRingsPerQueue * kRingEntries * sizeof(void*);
  std::uint64_t frames = kMessageFrames;
  if (payloads == Payloads::copied) {
    const std::uint64_t received = std::uint64_t{receivers(lcores, steering)} * sizes.segments;
    frames += lcores * (received + sizes.received_beside + 2 * sizes.idle);
  } else {
    frames += clone_pool(settings.mtu).count;
  }
  const std::uint64_t bytes = packets * (kMbufBytes + kPoolBytesPerPacket) +
                              3 * lcores * kPoolBytes + rings +
                              frames * (full_frame_bytes(settings.mtu_of_frames()) + kMbufBytes);
  return static_cast<unsigned>((bytes + bytes / kHeapReserve) / kMegabyte + kEalMegabytes);
}

}  // namespace gradcube::dataplane
