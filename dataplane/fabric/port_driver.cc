#include "dataplane/fabric/port_driver.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

void refuse_emulation(control::ClusterSettings& settings) {
  if (settings.fabric == control::FabricKind::memif) {
    throw control::UsageError(
        "the settings ask for the memif fabric, whose servers have their ports by --switch-dir");
  }
  if (settings.fabric == control::FabricKind::udp) {
    throw control::UsageError(
        "the settings ask for the udp fabric, whose servers have their ports by `hosts`: leave out "
        "--interfaces, --nics or --vdevs, or the fabric");
  }
  const control::Setting* given = control::given_emulation(settings);
  if (given == nullptr) return;
  throw control::UsageError(
      fmt::format("{} is for emulated links: leave it out of the settings of a server whose links "
                  "are real",
                  given->name));
}

// The queues of a port share its rate evenly, and a thread uses one at a time.
std::size_t lcores_by_threads(const control::ClusterSettings& settings) {
  return std::max(settings.rates.limited() ? 1 : settings.topology.ports(), settings.server_lcores);
}

std::uint64_t port_rate(const control::ClusterSettings& settings, bcube::ServerId server,
                        unsigned port) {
  return settings.rates.of_port(server, settings.topology.space().level_of_port(port));
}

std::vector<std::string> checked_names(const PortDriver& driver,
                                       const std::vector<std::string>& names,
                                       const control::Topology& topology) {
  if (topology.space().rails() > 1) {
    throw control::UsageError(
        fmt::format("{}: servers with several ports on a switch are for the embedded fabric, where "
                    "one process runs all of them",
                    driver.option));
  }
  if (driver.names == PortDriver::Names::by_port && names.size() != topology.ports()) {
    throw control::UsageError(
        topology.space().cabled()
            ? fmt::format("{}: it names {} and {} has {} ports: name one for each; of each level "
                          "first the one to the next server, level 0 first",
                          driver.option, names.size(), topology.spec(), topology.ports())
            : fmt::format("{}: it names {} and {} has {} levels: name one for each level, level 0 "
                          "first",
                          driver.option, names.size(), topology.spec(), topology.levels()));
  }
  std::vector<std::string> read = names;
  if (driver.read_name != nullptr) {
    std::transform(names.begin(), names.end(), read.begin(), driver.read_name);
  }
  std::vector<std::string> sorted = read;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw control::UsageError(fmt::format("{}: it names {} for two ports", driver.option, *twice));
  }
  return read;
}

}  // namespace gradcube::dataplane
