#include "cli/setup/recognise.h"

#include <algorithm>
#include <climits>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "bcube_forwarding/joined_ports.h"
#include "cli/setup/joints.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using control::ServerId;

constexpr unsigned kNoLevel = UINT_MAX;
// More ports in use than any topology's servers have: 7 levels, two on each of a torus.
constexpr std::size_t kMostPortsInUse = 2 * control::kMaxDimensions;
// In more levels a torus would be proposed after too many trials.
constexpr std::size_t kMostTorusPorts = 8;

// Says which level each joint is of, by those of host 0.
class Levels {
 public:
  Levels(const Cables& cables, const Joints& joints, const std::vector<unsigned>& of_first)
      : cables_(cables), joints_(joints), level_(joints.count(), kNoLevel) {
    for (std::size_t i = 0; i < of_first.size(); ++i) level_[joints.of_host(0)[i]] = of_first[i];
    std::vector<bool> seen(joints.hosts());
    seen[0] = true;
    std::deque<std::size_t> queue{0};
    for (; !queue.empty() && why_.empty(); queue.pop_front()) {
      const std::size_t from = queue.front();
      for (const std::size_t joint : joints.of_host(from)) {
        for (const HostPort at : joints[joint]) {
          if (seen[at.host] || !why_.empty()) continue;
          seen[at.host] = true;
          continue_at(from, at.host, joint);
          queue.push_back(at.host);
        }
      }
    }
  }

  // Why there are no such levels; empty if there are.
  const std::string& why() const { return why_; }
  unsigned of(std::size_t joint) const { return level_[joint]; }

 private:
  // The levels of `to` are opposite those of `from` in squares, and straight on.
  void continue_at(std::size_t from, std::size_t to, std::size_t by) {
    for (const std::size_t other : joints_.of_host(from)) {
      if (level_[other] == level_[by]) continue;
      const auto opposite = in_square(from, to, by, other);
      if (!opposite || (level_[*opposite] != kNoLevel && level_[*opposite] != level_[other])) {
        why_ = fmt::format(
            "{} is joined to {} and, at its other port {}, to {}: in a BCube or a torus one more "
            "host is joined to both of these, {}",
            cables_.hosts[from].name, cables_.hosts[to].name, cables_.text(end(other, from)),
            cables_.hosts[neighbour(other, from)].name,
            opposite ? "at ports of other levels" : "and here there is none");
        return;
      }
      level_[*opposite] = level_[other];
    }
    for (const std::size_t own : joints_.of_host(to)) {
      if (level_[own] == kNoLevel) level_[own] = level_[by];
    }
  }

  std::optional<std::size_t> in_square(std::size_t from, std::size_t to, std::size_t by,
                                       std::size_t other) const {
    const std::size_t corner = neighbour(other, from);
    for (const std::size_t own : joints_.of_host(to)) {
      if (own == by) continue;
      for (const HostPort far : joints_[own]) {
        if (far.host != to && far.host != from && joints_.between(far.host, corner)) return own;
      }
    }
    return std::nullopt;
  }

  HostPort end(std::size_t joint, std::size_t host) const {
    return {host, joints_.port_at(joint, host).value_or(0)};
  }
  std::size_t neighbour(std::size_t joint, std::size_t host) const {
    const Joints::Joint& ports = joints_[joint];
    return ports.front().host == host ? ports.back().host : ports.front().host;
  }

  const Cables& cables_;
  const Joints& joints_;
  std::vector<unsigned> level_;
  std::string why_;
};

using Digits = std::vector<std::size_t>;  // of one level, by host

// Hosts that are joined by links of all other levels have the same digit.
Digits digits_of(const Joints& joints, const Levels& levels, unsigned level) {
  Parts parts(joints.hosts());
  for (std::size_t joint = 0; joint < joints.count(); ++joint) {
    if (levels.of(joint) == level) continue;
    for (const HostPort port : joints[joint]) parts.join(joints[joint].front().host, port.host);
  }
  return parts.numbers();
}

// The same digits, in the order of their ring, which begins with that of host 0's first port.
Digits in_ring(const Joints& joints, const Levels& levels, unsigned level, const Digits& digits) {
  std::map<std::size_t, std::vector<std::size_t>> beside;
  for (std::size_t host = 0; host < joints.hosts(); ++host) {
    for (const std::size_t joint : joints.of_host(host)) {
      if (levels.of(joint) != level) continue;
      const std::size_t far = joints[joint].front().host == host ? joints[joint].back().host
                                                                 : joints[joint].front().host;
      auto& known = beside[digits[host]];
      if (std::find(known.begin(), known.end(), digits[far]) == known.end()) {
        known.push_back(digits[far]);
      }
    }
  }
  std::map<std::size_t, std::size_t> place{{digits[0], 0}};
  for (std::size_t at = digits[0]; !beside[at].empty();) {
    const auto& next = beside[at];
    const auto found = std::find_if(next.begin(), next.end(),
                                    [&](std::size_t digit) { return !place.contains(digit); });
    if (found == next.end()) break;
    place.emplace(*found, place.size());
    at = *found;
  }
  Digits ordered;
  for (const std::size_t digit : digits) {
    const auto found = place.find(digit);
    ordered.push_back(found == place.end() ? joints.hosts() : found->second);  // no digit
  }
  return ordered;
}

// Each server's ports, if its joints are there, and as wide.
std::optional<Proposal> placed_on(const control::Topology& topology, std::vector<std::size_t> hosts,
                                  const Joints& joints) {
  Proposal proposal{.topology = topology, .hosts = std::move(hosts), .ports = {}};
  proposal.ports.assign(topology.servers(), std::vector<std::size_t>(topology.ports()));
  const auto wanted = bcube::joined_ports(topology.space());
  for (const auto& ports : wanted) {
    const auto joint =
        joints.between(proposal.hosts[ports[0].server], proposal.hosts[ports[1].server]);
    if (!joint || joints[*joint].size() != ports.size()) return std::nullopt;
    for (const bcube::ServerPort at : ports) {
      const auto port = joints.port_at(*joint, proposal.hosts[at.server]);
      if (!port) return std::nullopt;
      proposal.ports[at.server][at.port] = *port;
    }
  }
  proposal.uses_all = wanted.size() == joints.count();
  return proposal;
}

std::optional<control::Topology> parsed_topology(const std::string& spec) {
  try {
    return control::parse_topology(spec, "the topology");
  } catch (const control::UsageError&) {  // larger than a topology may be
    return std::nullopt;
  }
}

std::string spec_of(const std::vector<std::size_t>& radices, bool is_torus) {
  const bool uniform =
      std::adjacent_find(radices.begin(), radices.end(), std::not_equal_to<>()) == radices.end();
  if (is_torus) return fmt::format("torus:{},{}", radices.front(), uniform ? radices.size() : 0);
  if (radices.size() == 1) return fmt::format("star:{}", radices.front());
  if (uniform) return fmt::format("bcube:{},{}", radices.front(), radices.size());
  return fmt::format("bcube:{}",
                     fmt::join(std::vector<std::size_t>(radices.rbegin(), radices.rend()), "x"));
}

std::optional<Proposal> with_levels(const Joints& joints, const Levels& levels, unsigned count,
                                    bool is_torus) {
  std::vector<std::size_t> radices;
  std::vector<std::size_t> number(joints.hosts());
  std::size_t weight = 1;
  for (unsigned level = 0; level < count; ++level) {
    Digits digits = digits_of(joints, levels, level);
    radices.push_back(*std::max_element(digits.begin(), digits.end()) + 1);
    if (is_torus) digits = in_ring(joints, levels, level, digits);
    for (std::size_t host = 0; host < number.size(); ++host) number[host] += weight * digits[host];
    weight *= radices.back();
  }
  const auto topology = parsed_topology(spec_of(radices, is_torus));
  if (!topology || topology->servers() != joints.hosts()) return std::nullopt;
  std::vector<std::size_t> hosts(joints.hosts(), joints.hosts());
  for (std::size_t host = 0; host < number.size(); ++host) {
    if (number[host] >= hosts.size() || hosts[number[host]] != hosts.size()) return std::nullopt;
    hosts[number[host]] = host;
  }
  return placed_on(*topology, std::move(hosts), joints);
}

// Calls visit(levels of host 0's ports) for each way to make pairs of them, until it returns true.
template <typename Visit>
bool for_each_pairing(std::vector<unsigned>& levels, unsigned next, const Visit& visit) {
  const auto first = std::find(levels.begin(), levels.end(), kNoLevel);
  if (first == levels.end()) return visit(levels);
  *first = next;
  for (auto second = first + 1; second != levels.end(); ++second) {
    if (*second != kNoLevel) continue;
    *second = next;
    if (for_each_pairing(levels, next + 1, visit)) return true;
    *second = kNoLevel;
  }
  *first = kNoLevel;
  return false;
}

// The hosts as they were named, in a ring of cables.
std::optional<Proposal> ring_in_mesh(const Joints& joints) {
  const auto topology = parsed_topology(fmt::format("torus:{},1", joints.hosts()));
  if (!topology) return std::nullopt;
  std::vector<std::size_t> hosts(joints.hosts());
  std::iota(hosts.begin(), hosts.end(), 0);
  return placed_on(*topology, std::move(hosts), joints);
}

// Those of few switches, where most have another number of ports.
void complain_of_sizes(const Joints& joints, std::vector<std::string>& faults) {
  std::map<std::size_t, std::size_t> how_many;
  for (std::size_t joint = 0; joint < joints.count(); ++joint) ++how_many[joints[joint].size()];
  const auto usual = std::max_element(
      how_many.begin(), how_many.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  if ((joints.count() - usual->second) * 3 > joints.count()) return;
  for (std::size_t joint = 0; joint < joints.count(); ++joint) {
    if (joints[joint].size() == usual->first) continue;
    faults.push_back(fmt::format("{} ports hear each other, where others are {}: {}",
                                 joints[joint].size(), usual->first, joints.text(joint)));
  }
}

}  // namespace

Recognised recognise(const Cables& cables) {
  Recognised result;
  const Joints joints(cables);
  result.faults = joints.faults();
  if (!result.faults.empty()) return result;
  const std::size_t ports = joints.of_host(0).size();
  if (ports > kMostPortsInUse) {
    result.faults.push_back(fmt::format(
        "{} ports of each host are in use; a topology has at most {}", ports, kMostPortsInUse));
    return result;
  }
  const auto add = [&](std::optional<Proposal> proposal) {
    if (proposal) result.proposals.push_back(std::move(*proposal));
    return proposal.has_value();
  };
  std::vector<unsigned> each_alone(ports);
  std::iota(each_alone.begin(), each_alone.end(), 0);
  const Levels levels(cables, joints, each_alone);
  if (levels.why().empty()) {
    add(with_levels(joints, levels, static_cast<unsigned>(ports), false));
  }
  if (joints.are_cables() && ports % 2 == 0 && ports <= kMostTorusPorts) {
    std::vector<unsigned> pairs(ports, kNoLevel);
    for_each_pairing(pairs, 0, [&](const std::vector<unsigned>& of_first) {
      const Levels paired(cables, joints, of_first);
      return paired.why().empty() &&
             add(with_levels(joints, paired, static_cast<unsigned>(ports / 2), true));
    });
  }
  if (joints.are_cables() && ports > 2 && ports + 1 == joints.hosts()) add(ring_in_mesh(joints));
  if (!result.proposals.empty()) return result;
  complain_of_sizes(joints, result.faults);
  if (!levels.why().empty()) result.faults.push_back(levels.why());
  if (result.faults.empty()) {
    result.faults.push_back(fmt::format(
        "{} hosts with {} ports each are joined, and neither as a star or BCube nor as a torus",
        joints.hosts(), ports));
  }
  return result;
}

}  // namespace gradcube::cli
