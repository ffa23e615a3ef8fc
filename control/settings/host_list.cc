#include "control/settings/host_list.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::control {

namespace {

constexpr std::string_view kBetweenRows = " \t\n";
constexpr unsigned kMostUdpPort = 65535;

// Not that of none, of a group, of all, or of whatever host is on one link or another (fe80::).
bool is_of_one_host(const HostAddress& address) {
  constexpr std::uint8_t kFirstGroup = 224;  // 224 to 255: groups, reserved, broadcast
  constexpr std::uint8_t kGroupV6 = 0xff;
  if (!address.is_v6) return address.bytes[0] != 0 && address.bytes[0] < kFirstGroup;
  const bool is_of_link = address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
  return address.bytes[0] != kGroupV6 && !is_of_link && address.bytes != decltype(address.bytes){};
}

// "10.0.0.1", "10.0.0.1:5000", "fd00::1" or "[fd00::1]:5000".
HostAddress parse_address(std::string_view text, std::string_view where) {
  HostAddress address;
  address.udp_port = kDefaultUdpPort;
  std::string_view host = text;
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  const bool has_port = colon != std::string_view::npos &&
                        (bracketed ? colon > 0 && text[colon - 1] == ']' : text.find(':') == colon);
  if (has_port) {
    host = text.substr(0, colon);
    address.udp_port = static_cast<std::uint16_t>(
        parse_integer(text.substr(colon + 1),
                      fmt::format("{} {}: its UDP port", where, quoted(text)), 1, kMostUdpPort));
  }
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  address.is_v6 = host.find(':') != std::string_view::npos;
  const bool is_read = host.find('\0') == std::string_view::npos &&
                       inet_pton(address.is_v6 ? AF_INET6 : AF_INET, std::string(host).c_str(),
                                 address.bytes.data()) == 1;
  if (!is_read || (bracketed && !address.is_v6) || !is_of_one_host(address)) {
    throw UsageError(
        fmt::format("{} {}: expected the IPv4 or IPv6 address of a host, and its UDP port if it is "
                    "not {}: 10.0.0.1, 10.0.0.1:5000, fd00::1 or [fd00::1]:5000",
                    where, quoted(text), kDefaultUdpPort));
  }
  return address;
}

HostAddress port_address(const HostRow& row, unsigned port) {
  HostAddress address = row.size() == 1 ? row.front() : row.at(port);
  address.udp_port = static_cast<std::uint16_t>(address.udp_port + port);
  return address;
}

void validate_row(const Topology& topology, const HostRow& row, const std::string& server) {
  if (row.size() != 1 && row.size() != topology.ports()) {
    throw UsageError(
        fmt::format("hosts: server {} has {} addresses, and {}; expected one address for all "
                    "ports, or one for each, level 0 first, and a --topology whose servers have as "
                    "many ports: star:N has 1, bcube:N,2 has 2",
                    server, row.size(), counted(topology.ports(), "port")));
  }
  for (const HostAddress& address : row) {
    if (address.udp_port + topology.ports() - 1 <= kMostUdpPort) continue;
    throw UsageError(
        fmt::format("hosts: server {}, {}: its {} ports take the UDP ports from {} "
                    "on; expected at most {}",
                    server, host_text(address), topology.ports(), address.udp_port,
                    kMostUdpPort - topology.ports() + 1));
  }
}

}  // namespace

HostList parse_hosts(std::string_view text, std::string_view where) {
  HostList hosts;
  for (const std::string_view row : words_of(text, kBetweenRows)) {
    HostRow& own = hosts.emplace_back();
    for (const std::string_view item : split(row, ',')) {
      own.push_back(parse_address(item, where));
    }
  }
  if (hosts.empty()) {
    throw UsageError(
        fmt::format("{} {}: expected the addresses of all servers: \"10.0.0.1 10.0.0.2\"", where,
                    quoted(text)));
  }
  return hosts;
}

std::string ip_text(const HostAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.is_v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

std::string host_text(const HostAddress& address) {
  const std::string ip = ip_text(address);
  if (address.udp_port == kDefaultUdpPort) return ip;
  return address.is_v6 ? fmt::format("[{}]:{}", ip, address.udp_port)
                       : fmt::format("{}:{}", ip, address.udp_port);
}

std::string hosts_text(const HostList& hosts) {
  std::string text;
  for (const HostRow& row : hosts) {
    if (!text.empty()) text += ' ';
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + host_text(row[i]);
  }
  return text;
}

void validate_hosts(const Topology& topology, const HostList& hosts) {
  if (hosts.empty()) return;
  if (hosts.size() != topology.servers()) {
    throw UsageError(
        fmt::format("hosts: {} named, and {} has {}; expected one for each, in the order of their "
                    "addresses",
                    hosts.size(), topology.spec(), counted(topology.servers(), "server")));
  }
  const std::vector<ServerId> servers = topology.space().server_list();
  std::map<HostAddress, std::string> who;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string server = topology.space().text(servers[i]);
    validate_row(topology, hosts[i], server);
    for (unsigned port = 0; port < topology.ports(); ++port) {
      const HostAddress address = port_address(hosts[i], port);
      if (address.is_v6 != hosts.front().front().is_v6) {
        throw UsageError(fmt::format(
            "hosts: server {} has the address {}, and others have one of the other family; "
            "expected IPv4 or IPv6 for all",
            server, host_text(address)));
      }
      const auto [found, is_new] =
          who.try_emplace(address, fmt::format("port {} of server {}", port, server));
      if (is_new) continue;
      throw UsageError(fmt::format(
          "hosts: {} and port {} of server {} are both at {}: expected another address, or another "
          "UDP port ({} or more apart)",
          found->second, port, server, host_text(address), topology.ports()));
    }
  }
}

HostAddress host_of_port(const Topology& topology, const HostList& hosts, ServerId server,
                         unsigned port) {
  const std::vector<ServerId> servers = topology.space().server_list();
  const auto place = std::lower_bound(servers.begin(), servers.end(), server) - servers.begin();
  return port_address(hosts.at(static_cast<std::size_t>(place)), port);
}

}  // namespace gradcube::control
