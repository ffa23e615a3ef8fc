// The network of a test bed that consists of the kernel's links: a veth from each server's
// namespace to a bridge, one bridge per switch, and on a tree a veth from bridge to bridge, in the
// namespace of the bed (bed_links.h, network_commands.h). No interface has an IP address, and the
// kernel speaks no IPv6 there, so it sends and answers nothing itself.
//
// prepare() moves the calling thread into the bed's namespace for good; other threads keep theirs.
// Namespaces have no names: they, their links and bridges are gone with the processes in them.
//
// Needs CAP_SYS_ADMIN, CAP_NET_ADMIN and iproute2.
#ifndef GRADCUBE_DATAPLANE_BED_VETH_NETWORK_H_
#define GRADCUBE_DATAPLANE_BED_VETH_NETWORK_H_

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/bed/bed_links.h"
#include "dataplane/bed/bed_network.h"

namespace gradcube::dataplane {

class VethNetwork final : public BedNetwork {
 public:
  explicit VethNetwork(const control::ClusterSettings& settings);

  void prepare() override;
  DaemonProcess::Network network_of_servers() const override { return DaemonProcess::Network::own; }
  std::vector<std::string> port_arguments() const override;
  void join(const std::deque<DaemonProcess>& servers) override;
  void watch(ControlLoop&) override {}
  nlohmann::ordered_json report() override;
  // Takes links down and up (link_request.h).
  std::size_t impair(const nlohmann::json& request) override;
  void end() override {}

 private:
  // Of the server at this place among those that are there.
  std::span<const BedLink> links_of(std::size_t place) const;

  control::ClusterSettings settings_;
  std::filesystem::path ip_;
  std::filesystem::path tc_;
  std::vector<BedLink> links_;
  std::vector<BedUplink> uplinks_;
  std::vector<control::Impairments> impairments_;  // of each
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_VETH_NETWORK_H_
