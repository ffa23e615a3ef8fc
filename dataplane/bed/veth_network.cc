#include "dataplane/bed/veth_network.h"

#include <algorithm>

#include "control/base/errors.h"
#include "dataplane/bed/link_request.h"
#include "dataplane/bed/network_commands.h"
#include "dataplane/bed/network_namespace.h"
#include "dataplane/bed/run_batch.h"

namespace gradcube::dataplane {

using bcube::ServerId;

VethNetwork::VethNetwork(const control::ClusterSettings& settings)
    : settings_(settings),
      ip_(find_network_program("ip")),
      tc_(find_network_program("tc")),
      links_(bed_links(settings_.topology)),
      uplinks_(bed_uplinks(settings_.topology)),
      impairments_(links_.size()) {}

void VethNetwork::prepare() {
  const NamespaceFailure failure = enter_new_network_namespace();
  if (failure.error != 0) throw control::SetupError(failure_text(failure));
}

std::vector<std::string> VethNetwork::port_arguments() const {
  std::string names;
  for (const BedLink& link : links_of(0)) {
    names += (names.empty() ? "" : ",") + link.interface;
  }
  return {"--interfaces", names};
}

void VethNetwork::join(const std::deque<DaemonProcess>& servers) {
  const bcube::AddressSpace& space = settings_.topology.space();
  const std::vector<ServerId> numbers = space.server_list();
  std::vector<pid_t> pids(space.addresses());
  for (std::size_t i = 0; i < servers.size(); ++i) pids[numbers[i]] = servers[i].process().pid();
  run_batch(ip_, switch_side_commands(links_, pids, settings_.mtu));
  run_batch(ip_, uplink_commands(uplinks_, settings_.mtu));
  run_batch(tc_,
            switch_queue_commands(links_, settings_) + uplink_queue_commands(uplinks_, settings_));
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const int network = servers[i].network_namespace();
    for_daemon("server " + space.text(numbers[i]), [&] {
      run_batch(ip_, server_side_commands(links_of(i)), network);
      run_batch(tc_, server_queue_commands(links_of(i), settings_), network);
    });
  }
}

std::span<const BedLink> VethNetwork::links_of(std::size_t place) const {
  const std::size_t ports = settings_.topology.ports();
  return std::span<const BedLink>(links_).subspan(place * ports, ports);
}

// The switches are the kernel's.
nlohmann::ordered_json VethNetwork::report() {
  const bool any_up = std::any_of(impairments_.begin(), impairments_.end(),
                                  [](const control::Impairments& link) { return link.up; });
  nlohmann::ordered_json report = link_report(settings_.topology.space(), names_of(links_),
                                              impairments_, {.up = any_up}, settings_.seed);
  report["switches"] = nlohmann::ordered_json::array();
  return report;
}

std::size_t VethNetwork::impair(const nlohmann::json& request) {
  const LinkRequest read =
      read_link_request(settings_.topology, names_of(links_), LinkKind::of_kernel, request);
  if (!read.change.clear && !read.change.up.has_value()) return 0;
  const control::Impairments after = read.change.applied_to({});  // `up` is all that there can be
  std::vector<BedLink> chosen;
  std::size_t changed = 0;
  for (const std::size_t link : read.links) {
    chosen.push_back(links_[link]);
    if (impairments_[link] != after) ++changed;
  }
  run_batch(ip_, link_state_commands(chosen, after.up));
  for (const std::size_t link : read.links) impairments_[link] = after;
  return changed;
}

}  // namespace gradcube::dataplane
