#include "cli/up/find_cables.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "cli/launch/host_group.h"
#include "cli/text/json_fields.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

constexpr auto kPortsPatience = std::chrono::seconds(90);
constexpr auto kHearing = std::chrono::milliseconds(50);
constexpr std::size_t kMostPortsOfHost = 64;
constexpr std::size_t kLongestPortName = 15;

void take_ports(const ClusterHosts& hosts, const HostGroup::Answers& answers, Cables& cables) {
  cables.hosts.clear();
  for (std::size_t host = 0; host < hosts.names.size(); ++host) {
    CabledHost own{.name = hosts.names[host], .ports = {}};
    for (const json& port : items(answers.values[host], "ports")) {
      if (own.ports.size() == kMostPortsOfHost) break;
      own.ports.push_back(
          {.name = control::printable(text_field(port, "name").value_or("?"), kLongestPortName),
           .mtu = static_cast<unsigned>(count_field(port, "mtu").value_or(0)),
           .is_up = flag_field(port, "up").value_or(false),
           .has_carrier = flag_field(port, "carrier").value_or(false)});
    }
    cables.hosts.push_back(std::move(own));
  }
}

void take_heard(const HostGroup::Answers& answers, Cables& cables) {
  const auto is_known = [&](HostPort at) {
    return at.host < cables.hosts.size() && at.port < cables.hosts[at.host].ports.size();
  };
  for (std::size_t host = 0; host < cables.hosts.size(); ++host) {
    for (const json& each : items(answers.values[host], "heard")) {
      if (each.size() != 3 || !std::all_of(each.begin(), each.end(), [](const json& number) {
            return number.is_number_unsigned();
          })) {
        continue;
      }
      const HostPort own{host, each[0].get<std::size_t>()};
      const HostPort from{each[1].get<std::size_t>(), each[2].get<std::size_t>()};
      cables.heard.emplace(own, from);
    }
  }
  std::erase_if(cables.heard,
                [&](const auto& pair) { return !is_known(pair.first) || !is_known(pair.second); });
}

// Whether one has somebody at its other end, and has heard nobody yet.
bool is_one_silent(const Cables& cables) {
  for (std::size_t host = 0; host < cables.hosts.size(); ++host) {
    for (std::size_t port = 0; port < cables.hosts[host].ports.size(); ++port) {
      const PortFacts& facts = cables.hosts[host].ports[port];
      const HostPort at{host, port};
      const auto first = cables.heard.lower_bound({at, {}});
      const bool hears = first != cables.heard.end() && first->first == at;
      if (facts.is_up && facts.has_carrier && !hears) return true;
    }
  }
  return false;
}

}  // namespace

FoundCables find_cables(const ClusterHosts& hosts, const std::vector<std::string>& interfaces,
                        double wait_seconds) {
  HostGroup group(hosts);
  const std::uint64_t setup = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  const auto ask = [&](const std::vector<json>& requests) {
    HostGroup::Answers answers = group.ask(requests, kPortsPatience);
    answers.require_all(hosts);
    return answers;
  };
  const std::vector<json> open(hosts.names.size(), {{"ports", {{"names", interfaces}}}});
  const std::vector<json> tell(hosts.names.size(), {{"ports", {{"setup", setup}}}});
  std::vector<json> greet;
  for (const std::size_t host : hosts.all()) {
    greet.push_back({{"ports", {{"setup", setup}, {"greet", host}}}});
  }
  FoundCables found;
  ask(open);
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(wait_seconds));
  do {
    ask(greet);
    std::this_thread::sleep_for(kHearing);
    const HostGroup::Answers told = ask(tell);
    take_ports(hosts, told, found.cables);
    take_heard(told, found.cables);
    found.recognised = recognise(found.cables);
    if (!found.recognised.proposals.empty() && !is_one_silent(found.cables)) break;
  } while (std::chrono::steady_clock::now() < deadline);
  return found;
}

}  // namespace gradcube::cli
