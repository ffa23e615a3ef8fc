// The node of one server, whose ports are as one of the port drivers makes them
// (dataplane/fabric/port_driver.h). The other servers' nodes are in other processes, most often on
// other hosts; what the nodes tell each other travels in frames.
//
// All frames carry a checksum: who knows what is between two ports? And all ports tell whoever
// hears them which they are: who knows how they are cabled?
//
// Ownership and threads: as local_cluster.h says. Owns the fabric.
#ifndef GRADCUBE_DATAPLANE_DAEMON_SERVER_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_SERVER_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "dataplane/daemon/local_cluster.h"
#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

struct ServerClusterOptions : LocalClusterOptions {
  const PortDriver* driver = nullptr;
  std::vector<std::string> ports;  // what its option names, as checked_names() returns it
};

class ServerCluster final : public LocalCluster {
 public:
  // options.servers is one server. Throws control::UsageError or SetupError.
  ServerCluster(const ServerClusterOptions& options, Clock& clock,
                const aggregation::Kernels& kernels, EventSink& events);
  ~ServerCluster() override;

  Fabric& fabric() override { return *fabric_; }
  const Fabric& fabric() const override { return *fabric_; }
  std::string_view fabric_name() const override { return driver_.name; }
  nlohmann::ordered_json impair(const nlohmann::json& request) override;
  nlohmann::ordered_json switches_report() const override;

 private:
  const PortDriver& driver_;
  std::unique_ptr<ServerFabric> fabric_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_SERVER_CLUSTER_H_
