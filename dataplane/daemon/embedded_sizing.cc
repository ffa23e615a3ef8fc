#include "dataplane/daemon/embedded_sizing.h"

#include <cstdint>
#include <utility>

#include "control/plan/base/topology.h"

namespace gradcube::dataplane {

EmbeddedFabricOptions embedded_fabric_options(const control::ClusterSettings& settings,
                                              const FabricParameters& parameters,
                                              unsigned engines_per_server,
                                              std::vector<bcube::ServerId> servers) {
  EmbeddedFabricOptions options{.space = settings.topology.space(), .servers = std::move(servers)};
  options.port.queues = static_cast<std::uint16_t>(engines_per_server);
  options.port.mtu = settings.mtu;
  for (unsigned level = 0; level < settings.topology.levels(); ++level) {
    options.levels.push_back({parameters.uplink_depth[level], settings.rates.of(level)});
  }
  for (const control::PortGroup& own : settings.rates.own_ports()) {
    options.own_ports[own.server] = {uplink_depth(settings, own.rate_bps), own.rate_bps};
  }
  if (settings.rates.limited()) {
    options.link.queue_bytes = settings.queue_bytes;
    options.link.mark_bytes = settings.ecn_threshold();
  }
  options.link.delay = settings.delay_ns;
  const control::Topology rated = settings.rated_topology();
  const bool has_trunks = rated.is_tree() && settings.rates.limited();
  for (unsigned level = 1; has_trunks && level < rated.link_levels(); ++level) {
    // Room for what waits for each of the servers, as at their own ports.
    const std::uint32_t sharers = rated.sharers(level);
    options.trunks.push_back({sharers,
                              {.bits_per_second = rated.dimensions()[level].rate_bps,
                               .delay = settings.delay_ns,
                               .queue_bytes = settings.queue_bytes * sharers,
                               .mark_bytes = settings.ecn_threshold() * sharers}});
  }
  options.clones = clone_pool(settings.mtu);
  options.seed = settings.seed;
  return options;
}

}  // namespace gradcube::dataplane
