// What a cluster is started with. The flags of `gradcube up`, a cluster file and the settings that
// the daemon is given all become this one struct.
//
// Each setting has a name, which is the flag's and the cluster file's key, and one textual form;
// apply_setting() is the one place that reads it. validate() checks what concerns several settings,
// and everything again for settings that were not read from text.
#ifndef GRADCUBE_CONTROL_SETTINGS_CLUSTER_SETTINGS_H_
#define GRADCUBE_CONTROL_SETTINGS_CLUSTER_SETTINGS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "control/plan/base/topology.h"
#include "control/settings/link_rates.h"
#include "control/settings/server_roles.h"

namespace gradcube::control {

// What a poller does when there is nothing to do: spin for ever, or spin, then yield, then sleep.
enum class Idle { spin, adaptive };
std::string_view idle_name(Idle idle);

// What the servers' links are. embedded: all servers and switches are in one process. memif: a
// daemon per server, and memory that they share with those of the emulated switches. veth: a daemon
// per server in a network namespace of its own, with the kernel's links and bridges between them.
enum class Fabric { embedded, memif, veth };
std::string_view fabric_name(Fabric fabric);

// What one process runs. `gradcube plan` takes any topology.
inline constexpr unsigned kMaxEmbeddedServers = 256;
// Of the memif and the veth fabric. Each is a process with packet memory and a poller of its own.
inline constexpr unsigned kMaxBedServers = 64;

inline constexpr unsigned kMinMtu = 1500;
inline constexpr unsigned kMaxMtu = 9000;

struct ClusterSettings {
  Topology topology = parse_topology("bcube:3,2", "topology");
  Aggregators aggregators;  // servers that take no trainers
  Fabric fabric = Fabric::embedded;
  LinkRates rates;
  unsigned mtu = kMaxMtu;     // bytes of IP packet per frame
  std::int64_t delay_ns = 0;  // of a switch, on top of serialization
  // How often neighbours greet each other over each link; 0: never, and no link is found to be
  // down; none: the daemon chooses.
  std::optional<std::uint64_t> greeting_ns;
  // How often the source of a flow compares its paths, if links have rates; 0: never; none: the
  // daemon chooses.
  std::optional<std::uint64_t> probing_ns;
  std::uint64_t queue_bytes = 128'000;               // of each switch port
  std::optional<std::uint64_t> ecn_threshold_bytes;  // of a port's queue; none: half the queue
  double loss = 0;                                   // probabilities, per frame
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  std::uint64_t seed = 1;  // of the switches' randomness
  // For the segments of all jobs, over all lcores; none: the daemon chooses.
  std::optional<std::uint64_t> packet_memory_bytes;
  std::vector<unsigned> lcores;  // empty: the daemon chooses
  // That each server of a test bed runs on. So many queues its memif links have, at both ends.
  unsigned server_lcores = 1;
  Idle idle = Idle::adaptive;
  // That the trainers of a user may use together; none: half of the host's memory.
  std::optional<std::uint64_t> trainer_memory_bytes;

  // The topology, whose dimensions have their links' rates.
  Topology rated_topology() const { return rates.on(topology); }
  std::uint64_t ecn_threshold() const { return ecn_threshold_bytes.value_or(queue_bytes / 2); }
  bool operator==(const ClusterSettings&) const = default;
};

// topology, absent, aggregators, fabric, rate, mtu, delay, queue, ecn-threshold, loss, duplicate,
// reorder, corrupt, seed, packet-memory, lcores, server-lcores, idle, trainer-memory, greeting,
// probing. absent and aggregators are of the topology: a setting of that makes it whole, and all
// its servers take trainers.
std::vector<std::string_view> setting_names();

// Reads one setting. Throws a UsageError when the text is not accepted, or when there is no setting
// of this name; its message begins with `where`, for example "--rate".
void apply_setting(ClusterSettings& settings, std::string_view name, std::string_view text,
                   std::string_view where);

// Throws a UsageError unless all values are in range and fit each other and the fabric.
void validate(const ClusterSettings& settings);

// For the daemon. from_json throws a UsageError on what to_json could not have written.
nlohmann::ordered_json to_json(const ClusterSettings& settings);
ClusterSettings settings_from_json(const nlohmann::ordered_json& json);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_CLUSTER_SETTINGS_H_
