#include "dataplane/daemon/server_cluster.h"

#include <nlohmann/json.hpp>

#include "control/base/errors.h"

namespace gradcube::dataplane {

ServerCluster::ServerCluster(const ServerClusterOptions& options, Clock& clock,
                             const aggregation::Kernels& kernels, EventSink& events)
    : LocalCluster(options, Payloads::copied, options.driver->steering, clock, kernels, events),
      driver_(*options.driver) {
  const auto poller = [this](std::uint16_t queue) { return poller_of(servers().front(), queue); };
  PortsRequest request{
      .settings = settings(), .server = servers().front(), .names = options.ports, .received = {}};
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    request.received.push_back(memory_of(poller(queue)).received());
  }
  fabric_ = driver_.make(request, clock);
  fabric_->connect([&](std::uint16_t queue) -> Poller& { return *pollers()[poller(queue)]; });
  send_messages_in_frames(false);
  announce_ports();
  start_nodes(options.incarnation);
  demand_checksums();
}

ServerCluster::~ServerCluster() { end_traffic(); }

nlohmann::ordered_json ServerCluster::impair(const nlohmann::json& /*request*/) {
  throw control::UsageError(driver_.impair_advice);
}

nlohmann::ordered_json ServerCluster::switches_report() const {
  return {{"switches", nlohmann::ordered_json::array()}};
}

}  // namespace gradcube::dataplane
