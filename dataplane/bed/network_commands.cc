#include "dataplane/bed/network_commands.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace gradcube::dataplane {

namespace {

// Of a frame, beside the IP packet: what the kernel counts, and what it does not see.
constexpr unsigned kEthernetHeaderBytes = 14;
constexpr unsigned kUnseenWireBytes = 24;

// The bucket holds that many full frames, or what passes in the time by which a timer may be late.
constexpr std::uint64_t kBurstFrames = 3;
constexpr std::uint64_t kTimersPerSecond = 20'000;

// More than a sender has in its transmit rings.
constexpr std::uint64_t kSenderQueueFrames = 1024;

std::uint64_t frame_bytes(const control::ClusterSettings& settings) {
  return settings.mtu + kEthernetHeaderBytes;
}

std::string queue_command(const std::string& device, std::uint64_t rate,
                          const control::ClusterSettings& settings, std::uint64_t queue_bytes) {
  const std::uint64_t burst = std::max(kBurstFrames * (frame_bytes(settings) + kUnseenWireBytes),
                                       rate / 8 / kTimersPerSecond);
  return fmt::format("qdisc add dev {} root tbf rate {}bit burst {} limit {} overhead {}\n", device,
                     rate, burst, queue_bytes, kUnseenWireBytes);
}

std::uint64_t port_rate(const BedLink& link, const control::ClusterSettings& settings) {
  return settings.link_rates().of_port(link.server, link.level);
}

void add_bridges(std::string& text, const std::set<std::string>& bridges, unsigned mtu) {
  for (const std::string& bridge : bridges) {
    fmt::format_to(std::back_inserter(text),
                   "link add name {} mtu {} type bridge stp_state 0 mcast_snooping 0\n", bridge,
                   mtu);
  }
}

// A bridge takes the least MTU of its ports unless it is told one after they have joined.
void bring_up_bridges(std::string& text, const std::set<std::string>& bridges, unsigned mtu) {
  for (const std::string& bridge : bridges) {
    fmt::format_to(std::back_inserter(text), "link set dev {} mtu {} up\n", bridge, mtu);
  }
}

}  // namespace

std::string switch_side_commands(std::span<const BedLink> links, std::span<const pid_t> pids,
                                 unsigned mtu) {
  std::set<std::string> bridges;
  for (const BedLink& link : links) bridges.insert(link.bridge);
  std::string text;
  add_bridges(text, bridges, mtu);
  const auto add = std::back_inserter(text);
  for (const BedLink& link : links) {
    fmt::format_to(add, "link add name {} mtu {} type veth peer name {} mtu {} netns {}\n",
                   link.port, mtu, link.interface, mtu, pids[link.server]);
    fmt::format_to(add, "link set dev {} master {} up\n", link.port, link.bridge);
  }
  bring_up_bridges(text, bridges, mtu);
  return text;
}

std::string uplink_commands(std::span<const BedUplink> uplinks, unsigned mtu) {
  std::set<std::string> above;
  std::set<std::string> all;
  for (const BedUplink& uplink : uplinks) {
    above.insert(uplink.above);
    all.insert({uplink.above, uplink.below});
  }
  std::string text;
  add_bridges(text, above, mtu);
  for (const BedUplink& uplink : uplinks) {
    fmt::format_to(std::back_inserter(text),
                   "link add name {0} mtu {4} type veth peer name {1} mtu {4}\n"
                   "link set dev {0} master {2} up\nlink set dev {1} master {3} up\n",
                   uplink.up, uplink.down, uplink.below, uplink.above, mtu);
  }
  bring_up_bridges(text, all, mtu);
  return text;
}

std::string server_side_commands(std::span<const BedLink> links) {
  std::string text;
  for (const BedLink& link : links) text += fmt::format("link set dev {} up\n", link.interface);
  return text;
}

std::string switch_queue_commands(std::span<const BedLink> links,
                                  const control::ClusterSettings& settings) {
  std::string text;
  if (!settings.rates.limited()) return text;
  for (const BedLink& link : links)
    text += queue_command(link.port, port_rate(link, settings), settings, settings.queue_bytes);
  return text;
}

std::string uplink_queue_commands(std::span<const BedUplink> uplinks,
                                  const control::ClusterSettings& settings) {
  std::string text;
  if (!settings.rates.limited()) return text;
  for (const BedUplink& uplink : uplinks) {
    for (const std::string& port : {uplink.up, uplink.down}) {
      text += queue_command(port, settings.link_rates().of(uplink.level), settings,
                            uplink.sharers * settings.queue_bytes);
    }
  }
  return text;
}

std::string server_queue_commands(std::span<const BedLink> links,
                                  const control::ClusterSettings& settings) {
  std::string text;
  if (!settings.rates.limited()) return text;
  for (const BedLink& link : links) {
    text += queue_command(link.interface, port_rate(link, settings), settings,
                          kSenderQueueFrames * frame_bytes(settings));
  }
  return text;
}

std::string link_state_commands(std::span<const BedLink> links, bool up) {
  std::string text;
  for (const BedLink& link : links) {
    text += fmt::format("link set dev {} {}\n", link.port, up ? "up" : "down");
  }
  return text;
}

}  // namespace gradcube::dataplane
