#include "dataplane/daemon/nic_sizing.h"

#include <cstdint>
#include <fmt/format.h>
#include <utility>

#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/daemon/memory_units.h"

namespace gradcube::dataplane {

namespace {

// --- Descriptors of a NIC's rings. With a rate the switch's queue bounds what arrives while the
// poller is away, and the port keeps to the rate itself. Without, the rings bridge the time until
// the poller gets its core back. All NICs have that many.
constexpr std::uint16_t kLimitedDescriptors = 128;
constexpr std::uint16_t kUnlimitedDescriptors = 512;

std::uint16_t descriptors(const control::ClusterSettings& settings) {
  return settings.rates.limited() ? kLimitedDescriptors : kUnlimitedDescriptors;
}

PacketPoolOptions frames(const char* name, std::uint16_t queue, std::uint32_t count,
                         const control::ClusterSettings& settings) {
  PacketPoolOptions options;
  options.name = fmt::format("{}-{}", name, queue);
  options.count = count;
  options.frame_bytes = full_frame_bytes(settings.mtu);
  options.cache = 0;
  return options;
}

}  // namespace

NicFabricOptions nic_fabric_options(const control::ClusterSettings& settings,
                                    bcube::ServerId server, std::vector<std::string> nics) {
  NicFabricOptions options;
  options.server = server;
  options.nics = std::move(nics);
  options.mtu = settings.mtu;
  options.descriptors = descriptors(settings);
  if (!settings.rates.limited()) return options;
  const bcube::AddressSpace space = settings.topology.space();
  for (unsigned port = 0; port < space.ports(); ++port) {
    options.bits_per_second.push_back(settings.rates.of(space.level_of_port(port)));
  }
  return options;
}

// Full rings, and as much in a burst.
PacketPoolOptions nic_device_pool(const control::ClusterSettings& settings, std::uint16_t queue) {
  return frames("device", queue, settings.topology.ports() * 2 * descriptors(settings), settings);
}

PacketPoolOptions nic_sent_pool(const control::ClusterSettings& settings, std::uint16_t queue) {
  const std::uint32_t of_a_port = EthdevPortOptions{}.backlog + descriptors(settings);
  return frames("sent", queue, settings.topology.ports() * of_a_port, settings);
}

unsigned nic_megabytes(const control::ClusterSettings& settings, unsigned queues) {
  const std::uint64_t packets = std::uint64_t{queues} * (nic_device_pool(settings, 0).count +
                                                         nic_sent_pool(settings, 0).count);
  const std::uint64_t bytes = packets * (full_frame_bytes(settings.mtu) + kPacketBytes);
  return static_cast<unsigned>((bytes + bytes / kHeapReserve) / kMegabyte + 1);
}

}  // namespace gradcube::dataplane
