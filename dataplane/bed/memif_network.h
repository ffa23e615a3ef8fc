// The network of a test bed that needs no rights: emulated switches in daemons of their own
// (gradcubed --switches), to which the servers' daemons connect by shared memory. A process has
// room for the ports of some switches (control/settings/switch_parts.h), so there are as many
// daemons as it takes.
//
// A daemon of switches that ends is logged and reported; its links stay down until another one has
// been started in its directory, to which the servers' daemons connect by themselves. The
// destructor ends those that end() has not.
//
// report() has one more field, "switch_daemons": of each its "part", "pid", and what its own status
// says of its links and memory; "why" it has ended or does not answer.
#ifndef GRADCUBE_DATAPLANE_BED_MEMIF_NETWORK_H_
#define GRADCUBE_DATAPLANE_BED_MEMIF_NETWORK_H_

#include <filesystem>
#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "control/settings/switch_parts.h"
#include "dataplane/bed/bed_links.h"
#include "dataplane/bed/bed_network.h"

namespace gradcube::dataplane {

class MemifNetwork final : public BedNetwork {
 public:
  // settings: with the cores of all daemons. directory: of the cluster. program: gradcubed.
  MemifNetwork(const control::ClusterSettings& settings, const control::RunDirectory& directory,
               const std::filesystem::path& program);

  void prepare() override;
  DaemonProcess::Network network_of_servers() const override {
    return DaemonProcess::Network::shared;
  }
  std::vector<std::string> port_arguments() const override;
  void join(const std::deque<DaemonProcess>&) override {}
  void watch(ControlLoop& loop) override { watch_daemons(loop, daemons_, names()); }
  nlohmann::ordered_json report() override;
  std::size_t impair(const nlohmann::json& request) override;
  void end() override;

 private:
  std::vector<std::string> names() const;

  control::ClusterSettings settings_;
  control::RunDirectory directory_;
  std::filesystem::path program_;
  control::SwitchParts parts_;
  std::vector<BedLink> links_;
  std::deque<DaemonProcess> daemons_;  // by part
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_MEMIF_NETWORK_H_
