#include "control/settings/interface_list.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::control {
namespace {

constexpr std::string_view kBetweenServers = " \t\n";
constexpr std::size_t kLongestName = 15;  // IFNAMSIZ, without the zero

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && !text.starts_with('-') &&
         std::all_of(text.begin(), text.end(),
                     [](char letter) { return letter > ' ' && letter < 0x7f && letter != '/'; });
}

std::vector<std::string> parse_row(std::string_view row, std::string_view where) {
  std::vector<std::string> names;
  for (const std::string_view name : split(row, ',')) {
    if (!is_name(name)) {
      throw UsageError(fmt::format(
          "{} {}: expected names of network interfaces, level 0 first, a row for each server: "
          "\"eth1,eth2 eth1,eth2\"",
          where, quoted(name)));
    }
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

InterfaceList parse_interfaces(std::string_view text, std::string_view where) {
  InterfaceList interfaces;
  for (const std::string_view row : words_of(text, kBetweenServers)) {
    interfaces.push_back(parse_row(row, where));
  }
  if (interfaces.empty()) parse_row("", where);  // says what is expected
  return interfaces;
}

std::string interfaces_text(const InterfaceList& interfaces) {
  std::vector<std::string> rows;
  for (const auto& row : interfaces) rows.push_back(fmt::format("{}", fmt::join(row, ",")));
  return fmt::format("{}", fmt::join(rows, " "));
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
  const std::vector<ServerId> servers = topology.space().server_list();
  const auto place = std::lower_bound(servers.begin(), servers.end(), server) - servers.begin();
  return interfaces.at(static_cast<std::size_t>(place));
}

}  // namespace gradcube::control
