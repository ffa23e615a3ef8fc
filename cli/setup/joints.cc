#include "cli/setup/joints.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <utility>

namespace gradcube::cli {
namespace {

std::vector<HostPort> all_ports(const Cables& cables) {
  std::vector<HostPort> ports;
  for (std::size_t host = 0; host < cables.hosts.size(); ++host) {
    for (std::size_t port = 0; port < cables.hosts[host].ports.size(); ++port) {
      ports.push_back({host, port});
    }
  }
  return ports;
}

std::string why_silent(const PortFacts& port) {
  if (!port.is_up) {
    return fmt::format("is down: `ip link set dev {} up` on that host, and set up again",
                       port.name);
  }
  return port.has_carrier ? "hears nobody" : "has no carrier: no cable, or nobody at its other end";
}

}  // namespace

Parts::Parts(std::size_t size) : above_(size) { std::iota(above_.begin(), above_.end(), 0); }

std::size_t Parts::root(std::size_t number) {
  while (above_[number] != number) number = above_[number] = above_[above_[number]];
  return number;
}

void Parts::join(std::size_t one, std::size_t other) { above_[root(one)] = root(other); }

std::vector<std::size_t> Parts::numbers() {
  std::map<std::size_t, std::size_t> number_of_root;
  std::vector<std::size_t> numbers;
  for (std::size_t each = 0; each < above_.size(); ++each) {
    numbers.push_back(number_of_root.try_emplace(root(each), number_of_root.size()).first->second);
  }
  return numbers;
}

Joints::Joints(const Cables& cables) : cables_(cables), of_host_(cables.hosts.size()) {
  join();
  for (const Joint& joint : joints_) check_joint(joint);
  check_silence();
  if (faults_.empty()) check_pairs();
  if (faults_.empty()) check_whole();
}

void Joints::join() {
  const std::vector<HostPort> ports = all_ports(cables_);
  const auto place = [&](HostPort port) {
    return static_cast<std::size_t>(std::lower_bound(ports.begin(), ports.end(), port) -
                                    ports.begin());
  };
  Parts parts(ports.size());
  for (const auto& [hears, heard] : cables_.heard) parts.join(place(hears), place(heard));
  const std::vector<std::size_t> numbers = parts.numbers();
  std::map<std::size_t, Joint> joints;
  for (std::size_t i = 0; i < ports.size(); ++i) joints[numbers[i]].push_back(ports[i]);
  for (auto& [number, joint] : joints) {
    if (joint.size() > 1) joints_.push_back(std::move(joint));
  }
  for (const HostPort port : ports) {
    for (std::size_t joint = 0; joint < joints_.size(); ++joint) {
      if (std::binary_search(joints_[joint].begin(), joints_[joint].end(), port)) {
        of_host_[port.host].push_back(joint);
      }
    }
  }
}

void Joints::check_joint(const Joint& joint) {
  for (std::size_t i = 0; i < joint.size(); ++i) {
    for (std::size_t j = i + 1; j < joint.size(); ++j) {
      const bool there = cables_.heard.contains({joint[i], joint[j]});
      const bool back = cables_.heard.contains({joint[j], joint[i]});
      const std::string one = cables_.text(joint[i]);
      const std::string other = cables_.text(joint[j]);
      if (joint[i].host == joint[j].host) {
        faults_.push_back(fmt::format(
            "{} and {} are at one switch or cable: the ports of a host have to lead to different "
            "ones (or name those to use by --interfaces)",
            one, other));
      } else if (there != back) {
        faults_.push_back(fmt::format("{} hears {}, and is not heard there", there ? one : other,
                                      there ? other : one));
      } else if (!there) {
        faults_.push_back(fmt::format(
            "{} and {} do not hear each other, and are both at the switch of {}", one, other,
            cables_.text(joint.front() == joint[i] ? joint.back() : joint.front())));
      }
    }
  }
}

// Hosts that have fewer ports in use than the others, and what may be the matter.
void Joints::check_silence() {
  std::size_t most = 1;
  for (const auto& own : of_host_) most = std::max(most, own.size());
  for (std::size_t host = 0; host < hosts(); ++host) {
    if (of_host_[host].size() == most) continue;
    const CabledHost& own = cables_.hosts[host];
    if (own.ports.empty()) {
      faults_.push_back(own.name + " has no Ethernet interface without an IP address");
      continue;
    }
    faults_.push_back(joints_.empty()
                          ? fmt::format("none of {}'s ports hears anybody", own.name)
                          : fmt::format("{} of {}'s ports {} somebody, and others have {}",
                                        of_host_[host].size(), own.name,
                                        of_host_[host].size() == 1 ? "hears" : "hear", most));
    for (std::size_t port = 0; port < own.ports.size(); ++port) {
      const HostPort at{host, port};
      const bool hears = std::any_of(joints_.begin(), joints_.end(), [at](const Joint& joint) {
        return std::binary_search(joint.begin(), joint.end(), at);
      });
      if (!hears) faults_.push_back(cables_.text(at) + " " + why_silent(own.ports[port]));
    }
  }
}

void Joints::check_pairs() {
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> joined;
  for (std::size_t joint = 0; joint < joints_.size(); ++joint) {
    for (const HostPort one : joints_[joint]) {
      for (const HostPort other : joints_[joint]) {
        if (one.host >= other.host) continue;
        const auto [found, is_new] = joined.try_emplace({one.host, other.host}, joint);
        if (is_new) continue;
        faults_.push_back(fmt::format(
            "{} and {} are joined twice, by {} and by {}: a topology joins them once at most "
            "(--interfaces names the ports to use)",
            cables_.hosts[one.host].name, cables_.hosts[other.host].name, text(found->second),
            text(joint)));
      }
    }
  }
}

void Joints::check_whole() {
  Parts parts(hosts());
  for (const Joint& joint : joints_) {
    for (const HostPort port : joint) parts.join(joint.front().host, port.host);
  }
  const std::vector<std::size_t> numbers = parts.numbers();
  std::map<std::size_t, std::vector<std::string>> names;
  for (std::size_t host = 0; host < hosts(); ++host) {
    names[numbers[host]].push_back(cables_.hosts[host].name);
  }
  for (const auto& [number, some] : names) {
    if (number == 0) continue;
    faults_.push_back(
        fmt::format("nothing joins {} to {}", fmt::join(some, ", "), fmt::join(names.at(0), ", ")));
  }
}

std::optional<std::size_t> Joints::port_at(std::size_t joint, std::size_t host) const {
  for (const HostPort port : joints_[joint]) {
    if (port.host == host) return port.port;
  }
  return std::nullopt;
}

std::optional<std::size_t> Joints::between(std::size_t one, std::size_t other) const {
  for (const std::size_t joint : of_host_[one]) {
    if (one != other && port_at(joint, other)) return joint;
  }
  return std::nullopt;
}

bool Joints::are_cables() const {
  return std::all_of(joints_.begin(), joints_.end(),
                     [](const Joint& joint) { return joint.size() == 2; });
}

std::string Joints::text(std::size_t joint) const {
  std::vector<std::string> ports;
  for (const HostPort port : joints_[joint]) ports.push_back(cables_.text(port));
  return fmt::format("{}", fmt::join(ports, ", "));
}

}  // namespace gradcube::cli
