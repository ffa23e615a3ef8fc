#include "dataplane/daemon/process/switch_daemon.h"

#include <fmt/format.h>
#include <rte_launch.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "control/settings/switch_parts.h"
#include "dataplane/daemon/memif_sizing.h"
#include "dataplane/daemon/resident_memory.h"
#include "dataplane/daemon/switch_requests.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

unsigned checked_part(const control::ClusterSettings& settings, unsigned part) {
  const control::SwitchParts parts(settings.topology.space(), control::kMaxSwitchProcessPorts);
  if (part < parts.count()) return part;
  throw control::UsageError(
      fmt::format("--switches {}: the switches of {} take {} processes; expected 0 to {}", part,
                  settings.topology.spec(), parts.count(), parts.count() - 1));
}

EalOptions eal_options(const control::ClusterSettings& settings, unsigned part) {
  EalOptions options;
  const std::vector<unsigned> usable = usable_cores();
  options.cores = {settings.lcores.empty() ? usable.front() : settings.lcores.front()};
  options.memory_megabytes = memif_switches_megabytes(settings, part);
  options.log = stderr;
  return options;
}

MemifSwitchesOptions switches_options(const control::ClusterSettings& settings, unsigned part,
                                      const control::RunDirectory& directory, PacketPool& frames) {
  MemifSwitchesOptions options = memif_switches_options(settings, part, directory.memif_socket());
  options.frames = &frames;
  return options;
}

}  // namespace

SwitchDaemon::SwitchDaemon(const control::ClusterSettings& settings, unsigned part,
                           control::RunDirectory directory, const control::DaemonLock& lock)
    : settings_(settings),
      part_(checked_part(settings, part)),
      directory_(std::move(directory)),
      eal_(eal_options(settings_, part_)),
      frames_(memif_frames_pool(settings_, part_)),
      poller_(clock_, settings_.idle),
      switches_(switches_options(settings_, part_, directory_, frames_), clock_),
      control_(loop_, directory_.control_socket()),
      stop_causes_(loop_, control_, directory_, lock) {
  switches_.connect(poller_);
  switches_.fabric().set_impairments({.loss = settings_.loss,
                                      .duplicate = settings_.duplicate,
                                      .reorder = settings_.reorder,
                                      .corrupt = settings_.corrupt});
  add_commands();
  loop_.on_tick([this] { tick(); });
  poller_.announce_run();
  if (rte_eal_remote_launch(Poller::run_at, &poller_, eal_.workers().front()) != 0) {
    throw control::SetupError("cannot start a poller for the switches");
  }
}

SwitchDaemon::~SwitchDaemon() {
  poller_.stop();
  poller_.await_end();
  rte_eal_mp_wait_lcore();
  switches_.discard_packets();
}

void SwitchDaemon::add_commands() {
  control_.add("status", [this](const nlohmann::json&) -> Json { return {{"status", status()}}; });
  control_.add("impair", [this](const nlohmann::json& request) {
    return impair(switches_.fabric(), settings_.topology, request, settings_.seed);
  });
}

Json SwitchDaemon::status() {
  EthdevPortCounts dropped;
  std::size_t connected = 0;
  for (std::size_t link = 0; link < switches_.fabric().links().size(); ++link) {
    const EthdevPort& port = switches_.port(link);
    connected += port.has_link() ? 1 : 0;
    add_counters(dropped, port.drop_counts());
  }
  Json status = {{"pid", getpid()},
                 {"part", part_},
                 {"links", switches_.fabric().links().size()},
                 {"connected", connected},
                 {"stalls", poller_.stalls()},
                 {"memory",
                  {{"daemon_bytes", own_resident_bytes()},
                   {"pool_bytes", frames_.bytes() + switches_.fabric().pool_bytes()}}},
                 {"counters", counters_json(dropped)}};
  status.update(switches_report(switches_.fabric(), settings_.seed));
  return status;
}

void SwitchDaemon::tick() {
  const SteadyClock::time_point now = SteadyClock::now();
  control_.tick(now);
  stop_causes_.look(now);
  if (stop_causes_.any() && control_.all_answered()) loop_.stop();
}

}  // namespace gradcube::dataplane
