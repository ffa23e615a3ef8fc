#include "control/settings/host_list.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::control {

namespace {

constexpr unsigned kMostUdpPort = 65535;
constexpr std::size_t kLongestInterfaceName = 15;  // IFNAMSIZ, without the zero

// "a,b c,d" as rows, of items that parse(item) makes.
template <typename Item, typename Parse>
std::vector<std::vector<Item>> rows_of(std::string_view text, Parse&& parse) {
  std::vector<std::vector<Item>> rows;
  for (const std::string_view row : words_of(text, " \t\n")) {
    rows.emplace_back();
    for (const std::string_view item : split(row, ',')) rows.back().push_back(parse(item));
  }
  return rows;
}

template <typename Rows, typename Text>
std::string rows_text(const Rows& rows, Text&& text_of) {
  std::vector<std::string> texts;
  for (const auto& row : rows) {
    std::string& text = texts.emplace_back();
    for (const auto& item : row) text += (text.empty() ? "" : ",") + text_of(item);
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

template <typename Rows>
const auto& row_of(const Topology& topology, const Rows& rows, ServerId server) {
  const std::vector<ServerId> servers = topology.space().server_list();
  const auto place = std::lower_bound(servers.begin(), servers.end(), server) - servers.begin();
  return rows.at(static_cast<std::size_t>(place));
}

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

bool is_interface_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestInterfaceName && !text.starts_with('-') &&
         std::all_of(text.begin(), text.end(),
                     [](char letter) { return letter > ' ' && letter < 0x7f && letter != '/'; });
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
  HostList hosts = rows_of<HostAddress>(
      text, [where](std::string_view item) { return parse_address(item, where); });
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

std::string hosts_text(const HostList& hosts) { return rows_text(hosts, host_text); }

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
  return port_address(row_of(topology, hosts, server), port);
}

InterfaceList parse_interfaces(std::string_view text, std::string_view where) {
  const auto parse = [where](std::string_view name) {
    if (is_interface_name(name)) return std::string(name);
    throw UsageError(fmt::format(
        "{} {}: expected names of network interfaces, level 0 first, a row for each server: "
        "\"eth1,eth2 eth1,eth2\"",
        where, quoted(name)));
  };
  InterfaceList interfaces = rows_of<std::string>(text, parse);
  if (interfaces.empty()) parse("");  // says what is expected
  return interfaces;
}

std::string interfaces_text(const InterfaceList& interfaces) {
  return rows_text(interfaces, [](const std::string& name) { return name; });
}

void validate_interfaces(const Topology& topology, const InterfaceList& interfaces) {
  if (interfaces.empty()) return;
  if (interfaces.size() != topology.servers()) {
    throw UsageError(
        fmt::format("interfaces: there are those of {}, and {} has {}; expected a row for each, in "
                    "the order of their addresses",
                    counted(interfaces.size(), "server"), topology.spec(), topology.servers()));
  }
  for (const ServerId server : topology.space().server_list()) {
    std::vector<std::string> names = interfaces_of(topology, interfaces, server);
    if (names.size() != topology.ports()) {
      throw UsageError(fmt::format("interfaces: server {} has {}, and {}; expected one each",
                                   topology.space().text(server), names.size(),
                                   counted(topology.ports(), "port")));
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      throw UsageError(fmt::format("interfaces: server {} has {} for two ports",
                                   topology.space().text(server), *twice));
    }
  }
}

std::vector<std::string> interfaces_of(const Topology& topology, const InterfaceList& interfaces,
                                       ServerId server) {
  return row_of(topology, interfaces, server);
}

}  // namespace gradcube::control
