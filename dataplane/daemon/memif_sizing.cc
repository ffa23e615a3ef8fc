#include "dataplane/daemon/memif_sizing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "control/settings/switch_parts.h"
#include "dataplane/daemon/embedded_sizing.h"
#include "dataplane/daemon/engine_assignment.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/daemon/packet_sizing.h"
#include "dataplane/fabric/memif/memif_fabric.h"
#include "dataplane/host/memory_units.h"

namespace gradcube::dataplane {

namespace {

// --- Frames in a process of switches. When its pool is empty, frames wait at their senders. Of
// each link, beside what is in the switch's queue and on the wire behind it:
constexpr std::uint64_t kFramesOfALink = 256;
// Of which no more is kept in memory, however long the delay is.
constexpr double kMostOnTheWire = 16e6;
constexpr std::uint32_t kCache = 64;

// --- Memory.
constexpr std::uint64_t kRingBytes = std::uint64_t{2} * 2048 * sizeof(void*);

std::uint64_t links_of(const control::ClusterSettings& settings, unsigned part) {
  const bcube::AddressSpace space = settings.topology.space();
  const control::SwitchParts parts(space, control::kMaxSwitchProcessPorts);
  std::uint64_t links = 0;
  for (const bcube::ServerId server : space.server_list()) {
    for (unsigned port = 0; port < space.ports(); ++port) links += parts.of(server, port) == part;
  }
  return links;
}

}  // namespace

std::uint16_t memif_queues(const control::ClusterSettings& settings) {
  std::vector<control::Lcore> lcores;
  for (unsigned id = 0; id < settings.server_lcores; ++id) lcores.push_back({.id = id});
  const std::size_t engines =
      engine_assignment(settings.rated_topology().whole(), lcores).engines(0).size();
  return static_cast<std::uint16_t>(engines);
}

MemifSwitchesOptions memif_switches_options(const control::ClusterSettings& settings, unsigned part,
                                            std::filesystem::path socket) {
  MemifSwitchesOptions options{
      .fabric = embedded_fabric_options(settings, fabric_parameters(settings), 1,
                                        settings.topology.space().server_list()),
      .socket = std::move(socket),
      .slots = memif_slots(settings),
      .queues = memif_queues(settings)};
  options.fabric.has_switch_at =
      [part,
       parts = control::SwitchParts(settings.topology.space(), control::kMaxSwitchProcessPorts)](
          bcube::ServerId server, unsigned port) { return parts.of(server, port) == part; };
  return options;
}

PacketPoolOptions memif_frames_pool(const control::ClusterSettings& settings, unsigned part) {
  // Each queue of the memif may have frames that wait for the server.
  std::uint64_t of_a_link =
      kFramesOfALink + (memif_queues(settings) - 1U) * EthdevPortOptions{}.backlog;
  if (settings.rates.limited()) {
    double bits_per_second = 0;
    for (unsigned level = 0; level < settings.topology.levels(); ++level) {
      bits_per_second = std::max(bits_per_second, static_cast<double>(settings.rates.of(level)));
    }
    for (const control::PortGroup& own : settings.rates.own_ports()) {
      bits_per_second = std::max(bits_per_second, static_cast<double>(own.rate_bps));
    }
    const double on_the_wire =
        std::min(bits_per_second / 8e9 * static_cast<double>(settings.delay_ns), kMostOnTheWire);
    of_a_link += 2 * (settings.queue_bytes + static_cast<std::uint64_t>(on_the_wire)) /
                 full_frame_bytes(settings.mtu);
    // Its part of the queues of a tree's uplinks.
    if (settings.topology.is_tree()) of_a_link *= settings.topology.link_levels();
  }
  return {.name = "frames",
          .count = static_cast<std::uint32_t>(links_of(settings, part) * of_a_link),
          .frame_bytes = full_frame_bytes(settings.mtu),
          .cache = kCache};
}

unsigned memif_switches_megabytes(const control::ClusterSettings& settings, unsigned part) {
  const std::uint64_t packets =
      std::uint64_t{memif_frames_pool(settings, part).count} + clone_pool(settings.mtu).count;
  const std::uint64_t ports =
      std::uint64_t{settings.topology.servers()} * settings.topology.ports();
  const std::uint64_t bytes =
      packets * (full_frame_bytes(settings.mtu) + kPacketBytes) + ports * kRingBytes;
  return static_cast<unsigned>((bytes + bytes / kHeapReserve) / kMegabyte + kEalMegabytes);
}

}  // namespace gradcube::dataplane
