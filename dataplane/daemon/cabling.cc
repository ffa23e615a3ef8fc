#include "dataplane/daemon/cabling.h"

#include <array>
#include <fmt/format.h>

#include "control/base/units.h"

namespace gradcube::dataplane {

namespace {

std::string rate_text(std::uint64_t bits_per_second) {
  return bits_per_second == 0 ? "none" : control::format_rate(bits_per_second);
}

// A server of another cluster may have any number.
std::string address_text(const bcube::AddressSpace& space, bcube::ServerId server) {
  if (server >= space.addresses()) return fmt::format("number {}", server);
  return space.text(server) + (space.is_absent(server) ? " (absent)" : "");
}

std::string differences(const protocol::SettingsDigest& own,
                        const protocol::SettingsDigest& other) {
  std::string text;
  if (other.mtu != own.mtu) text += fmt::format(", MTU {} (here {})", other.mtu, own.mtu);
  if (other.bits_per_second != own.bits_per_second) {
    text += fmt::format(", rate {} (here {})", rate_text(other.bits_per_second),
                        rate_text(own.bits_per_second));
  }
  if (!text.empty()) return text.substr(2);
  return "its MTU and slowest rate are the same: compare topology, absent servers, aggregators, "
         "rates, interval of greetings (greeting, or idle) and version";
}

// Whose cables are crossed, as far as it shows: one of the two is on the switch that the other's
// port belongs to.
std::string whose_levels(const bcube::AddressSpace& space, bcube::ServerId server, unsigned level,
                         const WrongGreeting& wrong) {
  const auto share = [&](unsigned at) {
    return space.contains(wrong.server) && at < space.levels() &&
           space.with_digit(wrong.server, at, space.digit(server, at)) == server;
  };
  if (share(level)) return fmt::format(" at {}", space.text(wrong.server));
  if (share(wrong.level)) return fmt::format(" at {}", space.text(server));
  return "";
}

}  // namespace

std::string wrong_text(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port,
                       const protocol::SettingsDigest& settings, const WrongGreeting& wrong) {
  const std::string self = space.text(server);
  const std::string hears = fmt::format("port {} of server {} hears ", port, self);
  const unsigned level = space.level_of_port(port);
  const std::string sender =
      fmt::format("{} {} of server {}", space.cabled() ? "a port of level" : "port", wrong.level,
                  address_text(space, wrong.server));
  switch (wrong.fault) {
    case GreetingFault::none:
      break;
    case GreetingFault::other_key:
      return fmt::format(
          "{}{}, or what claims to be it, with another key or none: compare the key files of both "
          "hosts; else it is of another cluster, or a forger",
          hears, sender);
    case GreetingFault::other_settings:
      return fmt::format("{}{}, which has other settings or is of another cluster: {}", hears,
                         sender, differences(settings, wrong.settings));
    case GreetingFault::own_address:
      return wrong.level == level
                 ? fmt::format(
                       "{}itself: another server has the address {} too, or a cable is "
                       "looped",
                       hears, self)
                 : fmt::format(
                       "{}port {} of the same server: both are on one switch, or another "
                       "server has the address {} too",
                       hears, wrong.level, self);
    case GreetingFault::other_level:
      return fmt::format(
          "{}{}: levels are crossed{}; compare the cables and the order of --interfaces", hears,
          sender, whose_levels(space, server, level, wrong));
    case GreetingFault::no_neighbour:
      return fmt::format(
          "{}{}, which is no neighbour at this {}: one of them is on a wrong {} or has a wrong "
          "address",
          hears, sender, space.cabled() ? "port" : "level", space.cabled() ? "cable" : "switch");
  }
  return "";
}

std::string wrong_text(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port,
                       const protocol::SettingsDigest& settings,
                       std::span<const WrongGreeting> all) {
  std::string text;
  for (const WrongGreeting& wrong : all) {
    if (wrong.fault == GreetingFault::none) continue;
    if (!text.empty()) text += "; besides, ";
    text += wrong_text(space, server, port, settings, wrong);
  }
  return text;
}

WrongPorts wrong_ports(const bcube::AddressSpace& space, const std::vector<EngineAt>& engines) {
  // Of each port what is known to be wrong, and what has another key.
  std::map<const Engine*, std::vector<std::array<WrongGreeting, 2>>> heard;
  for (const EngineAt& at : engines) {
    heard[at.engine].resize(space.ports(at.engine->settings().server));
  }
  on_each(engines, [&](const EngineAt& at) {
    auto& of_engine = heard.at(at.engine);
    for (unsigned port = 0; port < of_engine.size(); ++port) {
      of_engine[port] = {at.engine->wrong_greeting(port), at.engine->other_key(port)};
    }
  });
  WrongPorts ports;
  for (const EngineAt& at : engines) {
    const EngineSettings& settings = at.engine->settings();
    for (unsigned port = 0; port < heard.at(at.engine).size(); ++port) {
      std::string text = wrong_text(space, settings.server, port, settings.greetings.digest,
                                    heard.at(at.engine)[port]);
      if (!text.empty()) ports[{settings.server, port}] = std::move(text);
    }
  }
  return ports;
}

std::vector<std::string> WrongPortsLog::news(const WrongPorts& ports, TimePoint now) {
  std::erase_if(logged_, [now](const auto& each) { return now - each.second >= kOnceIn; });
  std::vector<std::string> news;
  for (const auto& [port, text] : ports) {
    if (logged_.size() == kMostAtOnce) break;
    if (logged_.emplace(text, now).second) news.push_back(text);
  }
  return news;
}

}  // namespace gradcube::dataplane
