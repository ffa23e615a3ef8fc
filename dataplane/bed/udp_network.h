// The network of a test bed that needs neither rights nor switches: each server has an address of
// this host, and datagrams pass between them. Where the settings name no hosts, the servers have
// addresses of the loopback interface, 127.A.B.1, 127.A.B.2 and so on: of a block that no other bed
// of this host has, as each binds the block's last address as long as it lives.
//
// Links cannot be impaired: the loopback interface is everybody's.
#ifndef GRADCUBE_DATAPLANE_BED_UDP_NETWORK_H_
#define GRADCUBE_DATAPLANE_BED_UDP_NETWORK_H_

#include <string>
#include <vector>

#include "control/base/descriptor.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/bed/bed_network.h"

namespace gradcube::dataplane {

class UdpNetwork final : public BedNetwork {
 public:
  // Gives the settings hosts where they have none.
  explicit UdpNetwork(control::ClusterSettings& settings);

  void prepare() override {}
  DaemonProcess::Network network_of_servers() const override {
    return DaemonProcess::Network::shared;
  }
  std::vector<std::string> port_arguments() const override { return {}; }
  void join(const std::deque<DaemonProcess>&) override {}
  void watch(ControlLoop&) override {}
  nlohmann::ordered_json report() override;
  // Throws a control::UsageError.
  std::size_t impair(const nlohmann::json& request) override;
  void end() override {}

 private:
  const control::ClusterSettings& settings_;
  control::Descriptor block_;  // a socket at its last address
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_UDP_NETWORK_H_
