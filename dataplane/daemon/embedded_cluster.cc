#include "dataplane/daemon/embedded_cluster.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "dataplane/daemon/embedded_sizing.h"
#include "dataplane/daemon/switch_requests.h"

namespace gradcube::dataplane {

namespace {

Steering steering_of(const EmbeddedClusterOptions& options) {
  return options.replace_ports ? Steering::uncertain : Steering::certain;
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(const EmbeddedClusterOptions& options, Clock& clock,
                                 const aggregation::Kernels& kernels, EventSink& events)
    : LocalCluster(options, Payloads::referenced, steering_of(options), clock, kernels, events),
      replace_ports_(options.replace_ports) {
  make_fabric();
  nodes().around().greet_each_other = options.nodes_greet_each_other;
  // Those that greet each other stand for processes of their own.
  if (!options.nodes_greet_each_other) nodes().set_refers_to_memory();
  if (options.messages_pass_the_fabric) send_messages_in_frames(true);
  start_nodes(options.incarnation);
  fabric_->set_impairments({.loss = settings().loss,
                            .duplicate = settings().duplicate,
                            .reorder = settings().reorder,
                            .corrupt = settings().corrupt});
}

EmbeddedCluster::~EmbeddedCluster() { end_traffic(); }

std::vector<Port*> EmbeddedCluster::ports_of(bcube::ServerId server) {
  const std::vector<Port*> ports = fabric_->ports(server);
  return replace_ports_ ? replace_ports_(server, ports) : ports;
}

void EmbeddedCluster::make_fabric() {
  fabric_ = std::make_unique<EmbeddedFabric>(
      embedded_fabric_options(settings(), parameters(), queues(), servers()));
  fabric_->on_corruption([this] { demand_checksums(); });
  std::vector<Poller*> all;
  for (const auto& poller : pollers()) all.push_back(poller.get());
  fabric_->connect(
      [this](bcube::ServerId server, std::uint16_t queue) -> Poller& {
        return *pollers()[poller_of(server, queue)];
      },
      all);
}

nlohmann::ordered_json EmbeddedCluster::impair(const nlohmann::json& request) {
  return dataplane::impair(*fabric_, topology(), request, settings().seed);
}

nlohmann::ordered_json EmbeddedCluster::switches_report() const {
  return dataplane::switches_report(*fabric_, settings().seed);
}

}  // namespace gradcube::dataplane
