#include "dataplane/daemon/cabling.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

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

constexpr std::size_t kMostNamed = 4;

// "[1], [2] and 3 more"
std::string neighbours_text(const bcube::AddressSpace& space,
                            const std::vector<bcube::ServerId>& servers) {
  std::vector<std::string> names;
  for (const bcube::ServerId server : servers) {
    if (names.size() < kMostNamed) names.push_back(space.text(server));
  }
  const std::size_t more = servers.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

void add_sentence(std::string& text, const std::string& more) {
  if (!text.empty() && !more.empty()) text += "; besides, ";
  text += more;
}

// What a port has found out.
struct Heard {
  std::array<WrongGreeting, 2> wrong;  // what is known to be wrong, and what has another key
  std::vector<LossyLength> lengths;
};

}  // namespace

std::string length_text(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port,
                        unsigned mtu, std::span<const LossyLength> links) {
  std::map<std::string, std::vector<bcube::ServerId>> by_direction;
  for (const LossyLength& link : links) {
    const char* direction = link.from && link.to ? "to and from" : link.to ? "to" : "from";
    by_direction[direction].push_back(link.neighbour);
  }
  std::string between;
  for (const auto& [direction, servers] : by_direction) {
    between += fmt::format("{}{} {}", between.empty() ? "" : ", and ", direction,
                           neighbours_text(space, servers));
  }
  if (between.empty()) return "";
  return fmt::format(
      "port {} of server {}: {} small frames pass, frames of MTU {} do not: raise the MTU of the "
      "switches and interfaces on the way, or start the cluster with a smaller one (--mtu)",
      port, space.text(server), between, mtu);
}

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
    add_sentence(text, wrong_text(space, server, port, settings, wrong));
  }
  return text;
}

WrongPorts wrong_ports(const bcube::AddressSpace& space, const std::vector<EngineAt>& engines) {
  std::map<const Engine*, std::vector<Heard>> heard;
  for (const EngineAt& at : engines) {
    heard[at.engine].resize(space.ports(at.engine->settings().server));
  }
  on_each(engines, [&](const EngineAt& at) {
    auto& of_engine = heard.at(at.engine);
    for (unsigned port = 0; port < of_engine.size(); ++port) {
      of_engine[port] = {{at.engine->wrong_greeting(port), at.engine->other_key(port)},
                         at.engine->lossy_lengths(port)};
    }
  });
  WrongPorts ports;
  for (const EngineAt& at : engines) {
    const EngineSettings& settings = at.engine->settings();
    for (unsigned port = 0; port < heard.at(at.engine).size(); ++port) {
      const protocol::SettingsDigest& digest = settings.greetings.digest;
      const auto& [wrong, lengths] = heard.at(at.engine)[port];
      WrongPort found{wrong_text(space, settings.server, port, digest, wrong), {}};
      add_sentence(found.text, length_text(space, settings.server, port, digest.mtu, lengths));
      for (const LossyLength& link : lengths) found.short_only.push_back(link.neighbour);
      if (!found.text.empty()) ports[{settings.server, port}] = std::move(found);
    }
  }
  return ports;
}

std::vector<std::string> WrongPortsLog::news(const WrongPorts& ports, TimePoint now) {
  std::erase_if(logged_, [now](const auto& each) { return now - each.second >= kOnceIn; });
  std::vector<std::string> news;
  for (const auto& [port, wrong] : ports) {
    if (logged_.size() == kMostAtOnce) break;
    if (logged_.emplace(wrong.text, now).second) news.push_back(wrong.text);
  }
  return news;
}

}  // namespace gradcube::dataplane
