#include "dataplane/bed/udp_network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/settings/host_list.h"
#include "dataplane/bed/link_request.h"

namespace gradcube::dataplane {

namespace {

// 127.1.0 to 127.254.255. Not 127.0: others use addresses of it by name.
constexpr std::uint32_t kBlocks = 254 * 256;
constexpr std::uint32_t kFirstBlock = 256;
constexpr std::uint32_t kTries = 4096;
constexpr std::uint32_t kLastAddress = 254;
static_assert(control::kMaxBedServers < kLastAddress);

std::uint32_t address_in(std::uint32_t block, std::uint32_t place) {
  return std::uint32_t{127} << 24 | (kFirstBlock + block) << 8 | place;
}

// The block's, or -1 if another process has it.
control::Descriptor bound_to_last_of(std::uint32_t block) {
  control::Descriptor last(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(control::kDefaultUdpPort);
  address.sin_addr.s_addr = htonl(address_in(block, kLastAddress));
  if (bind(last.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    last.reset();
  }
  return last;
}

control::HostList hosts_of(std::uint32_t block, std::uint32_t servers) {
  control::HostList hosts;
  for (std::uint32_t place = 1; place <= servers; ++place) {
    const std::uint32_t address = address_in(block, place);
    control::HostAddress host;
    for (unsigned i = 0; i < 4; ++i) {
      host.bytes[i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
    }
    host.udp_port = control::kDefaultUdpPort;
    hosts.push_back({host});
  }
  return hosts;
}

}  // namespace

UdpNetwork::UdpNetwork(control::ClusterSettings& settings) : settings_(settings) {
  if (!settings.hosts.empty()) return;
  const auto first = static_cast<std::uint32_t>(getpid());
  for (std::uint32_t i = 0; i < kTries && block_.get() < 0; ++i) {
    const std::uint32_t block = (first + i) % kBlocks;
    block_ = bound_to_last_of(block);
    if (block_.get() >= 0) settings.hosts = hosts_of(block, settings.topology.servers());
  }
  if (block_.get() < 0) {
    throw control::SetupError(
        fmt::format("the loopback interface has no addresses for the servers: UDP port {} is taken "
                    "at 127.1.0.254 and {} others, or 127.0.0.0/8 is not there",
                    control::kDefaultUdpPort, kTries - 1));
  }
}

nlohmann::ordered_json UdpNetwork::report() {
  nlohmann::ordered_json report =
      link_report(settings_.topology.space(), {}, {}, {.up = true}, settings_.seed);
  report["switches"] = nlohmann::ordered_json::array();
  return report;
}

std::size_t UdpNetwork::impair(const nlohmann::json& /*request*/) {
  throw control::UsageError(
      "impair: links of the udp fabric are the network's between the hosts, which Gradcube leaves "
      "alone; those of the embedded, the memif and the veth fabric can be impaired");
}

}  // namespace gradcube::dataplane
