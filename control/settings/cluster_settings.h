// What a cluster is started with. The flags of `gradcube up`, a cluster file and the settings that
// the daemon is given all become this one struct.
//
// kSettings below has a row for each setting (setting.h): its name, which is the flag's and the
// cluster file's key, its bounds and its help. validate() checks what concerns several settings,
// and everything again for settings that were not read from text.
#ifndef GRADCUBE_CONTROL_SETTINGS_CLUSTER_SETTINGS_H_
#define GRADCUBE_CONTROL_SETTINGS_CLUSTER_SETTINGS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/fair_share.h"
#include "control/plan/algorithms/cut_threads.h"
#include "control/plan/base/topology.h"
#include "control/settings/host_list.h"
#include "control/settings/link_rates.h"
#include "control/settings/name_list.h"
#include "control/settings/server_roles.h"
#include "control/settings/setting.h"

namespace gradcube::control {

// What a poller does when there is nothing to do: spin for ever, or spin, then yield, then sleep.
enum class Idle { spin, adaptive };
inline constexpr std::string_view kIdleNames[] = {"spin", "adaptive"};
std::string_view idle_name(Idle idle);

// What joins the servers of a cluster that `gradcube up` starts. embedded: all servers and switches
// are in one process. memif: a daemon per server, and memory that they share with those of the
// emulated switches. veth: a daemon per server in a network namespace of its own, with the kernel's
// links and bridges between them. udp: a daemon per server, and datagrams between the addresses of
// `hosts`, on one host or on several. What else a server on a host of its own may have is no
// business of it.
enum class FabricKind { embedded, memif, veth, udp };
inline constexpr std::string_view kFabricNames[] = {"embedded", "memif", "veth", "udp"};
std::string_view fabric_name(FabricKind fabric);

// What makes frames between processes those of this cluster. key: a MAC, by the key that `key_file`
// has. none: a CRC32C, which anybody can compute.
enum class Authentication { key, none };
inline constexpr std::string_view kAuthenticationNames[] = {"key", "none"};
std::string_view authentication_name(Authentication authentication);

// What one process runs. `gradcube plan` takes any topology.
inline constexpr unsigned kMaxEmbeddedServers = 256;
// Of the memif and the veth fabric, and of the udp fabric without hosts. Each is a process with
// packet memory and a poller of its own.
inline constexpr unsigned kMaxBedServers = 64;

inline constexpr unsigned kMostServerLcores = kMostCutThreads;
inline constexpr std::uint64_t kLeastPacketMemory = 1'000'000;
inline constexpr std::uint64_t kMostPacketMemory = 64'000'000'000;
inline constexpr std::uint64_t kLeastTrainerMemory = 1 << 20;
inline constexpr unsigned kMostUserJobs = 64;  // what a server holds of all users
inline constexpr std::uint64_t kMostUserSessions = 1'000'000;
inline constexpr std::uint64_t kLongestDelay = 3'600'000'000'000;
inline constexpr std::uint64_t kShortestGreeting = 1'000'000;
inline constexpr std::uint64_t kShortestProbing = 10'000'000;
inline constexpr std::uint64_t kLongestInterval = 60'000'000'000;

// Where none is said to be the daemon's choice, dataplane/daemon/fabric_sizing.cc chooses.
struct ClusterSettings {
  Topology topology = parse_topology("bcube:3,2", "topology");
  Aggregators aggregators;  // servers that take no trainers
  // Of the udp fabric, or of interfaces, which the hosts are reached beside; none: `gradcube up`
  // finds some on its host.
  HostList hosts;
  InterfaceList interfaces;  // of servers that are cabled to each other
  FabricKind fabric = FabricKind::embedded;
  LinkRates rates;  // as given; link_rates() has those of a tree's uplinks, too
  std::optional<std::uint64_t> oversubscription;
  unsigned mtu = kMaxMtu;     // bytes of IP packet that links carry
  unsigned frame_mtu = 0;     // of frames, where ports cut them into several; 0: they do not
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
  // On which each server adds up: plans have as many threads, or more. In a test bed each daemon
  // runs on so many, and each memif link has so many queues, at both ends.
  unsigned server_lcores = 1;
  Idle idle = Idle::adaptive;
  // That the trainers of a user may use together; none: half of the host's memory.
  std::optional<std::uint64_t> trainer_memory_bytes;
  // Who may use the daemon's sockets beside its own user and root: users, and members of groups.
  NameList allowed_users;
  NameList allowed_groups;
  // That a user may have on each server, and at each daemon; none: all, or half of what there is
  // where others are allowed.
  std::optional<std::uint64_t> user_jobs;
  std::optional<std::uint64_t> user_sessions;

  Authentication authentication = Authentication::key;
  std::string key_file;  // an absolute path; empty: none is named

  bool has_tenants() const { return !allowed_users.empty() || !allowed_groups.empty(); }
  FairShare share() const { return {has_tenants()}; }
  unsigned jobs_per_user() const {
    return static_cast<unsigned>(user_jobs.value_or(share().most(kMostUserJobs)));
  }
  // Bytes of IP packet per frame.
  unsigned mtu_of_frames() const { return frame_mtu != 0 ? frame_mtu : mtu; }
  LinkRates link_rates() const { return rates.with_uplinks(topology, oversubscription); }
  // The topology, whose dimensions have their links' rates, and which has the links' MTU.
  Topology rated_topology() const {
    return link_rates().on(topology).with_lcores(server_lcores).with_mtu(mtu);
  }
  std::uint64_t ecn_threshold() const { return ecn_threshold_bytes.value_or(queue_bytes / 2); }
  bool operator==(const ClusterSettings&) const = default;
};

// Absent servers and aggregators are of the topology: a setting of that makes it whole, and all its
// servers take trainers. Servers' own ports come with the rates, and are kept with them.
void apply_topology(ClusterSettings& settings, std::string_view text, std::string_view where);
void apply_absent(ClusterSettings& settings, std::string_view text, std::string_view where);
void apply_aggregators(ClusterSettings& settings, std::string_view text, std::string_view where);
void apply_rates(ClusterSettings& settings, std::string_view text, std::string_view where);
std::string topology_text(const ClusterSettings& settings);
std::string absent_text(const ClusterSettings& settings);
std::string aggregators_text(const ClusterSettings& settings);
std::string rates_text(const ClusterSettings& settings);
std::string parse_key_file(std::string_view text, std::string_view where);
std::string key_file_text(const std::string& path);
inline constexpr SettingForm kTopologyForm{apply_topology, topology_text};
inline constexpr SettingForm kAbsentForm{apply_absent, absent_text};
inline constexpr SettingForm kAggregatorsForm{apply_aggregators, aggregators_text};
inline constexpr SettingForm kRatesForm{apply_rates, rates_text};
// "0,2" or "0-3,6".
std::vector<unsigned> parse_lcores(std::string_view text, std::string_view where);
std::string lcores_text(const std::vector<unsigned>& lcores);

// All settings, in the order in which they are applied. scripts/quickstart.sh reads the names here.
inline constexpr Setting kSettings[] = {
    {"topology", "topology", Reach::cluster, kTopologyForm, kTopologyForms},
    {"absent", "topology", Reach::cluster, kAbsentForm,
     "Addresses that have no server: \"3,1 3,2\". Nobody is started there, and nobody waits for "
     "them"},
    {"aggregators", "topology", Reach::cluster, kAggregatorsForm,
     "Servers that take no trainers, and are there to aggregate hubs: \"2,2\". Jobs on all servers "
     "are on the others"},
    {"hosts", "topology", Reach::cluster,
     kValueForm<&ClusterSettings::hosts, parse_hosts, hosts_text>,
     "With the udp fabric, the servers' IP addresses in their order, [0,0] first: \"10.0.0.1 "
     "10.0.0.2\"; of a server with several, one for each port: \"10.0.0.1,10.1.0.1 ...\" (default: "
     "all servers on this host)"},
    {"interfaces", "topology", Reach::cluster,
     kValueForm<&ClusterSettings::interfaces, parse_interfaces, interfaces_text>,
     "With hosts whose ports are cabled to each other, the network interfaces of each server in "
     "their order, level 0 first: \"eth1,eth2 eth2,eth1 ...\"; `gradcube setup` finds them"},
    {"fabric", "link", Reach::daemon, kNameForm<&ClusterSettings::fabric, kFabricNames>,
     "embedded: all servers and switches in one process; memif: a daemon per server, with emulated "
     "switches between them; veth: a daemon per server, with the kernel's links and bridges (needs "
     "root); udp: a daemon per server, with datagrams between the addresses of --hosts"},
    {"rate", "link", Reach::cluster, kRatesForm,
     "Rate of every link, 200mbit, or of each level's, level0=10gbit,level1=1gbit (default: as "
     "fast as the CPU goes). One rate on a tree is that of the servers' links. Servers may have "
     "ports of their own, on a star several: 200mbit,server8=10x200mbit"},
    {"oversubscription", "link", Reach::cluster,
     kNumberForm<&ClusterSettings::oversubscription, NumberUnit::none, 1, kMostOversubscription>,
     "On a tree with one rate: how many times what its uplink passes the links below a switch pass "
     "together (default: 1)"},
    {"mtu", "link", Reach::cluster,
     kNumberForm<&ClusterSettings::mtu, NumberUnit::none, kMinMtu, kMaxMtu>,
     "Bytes of IP packet per frame, 1280 to 9000"},
    {"delay", "link", Reach::emulated,
     kNumberForm<&ClusterSettings::delay_ns, NumberUnit::nanoseconds, 0, kLongestDelay>,
     "Delay of a switch, on top of serialization: 50us"},
    {"queue", "link", Reach::daemon, kNumberForm<&ClusterSettings::queue_bytes, NumberUnit::bytes>,
     "Bytes of a switch port's queue: 128K, 64Ki"},
    {"ecn-threshold", "link", Reach::emulated,
     kNumberForm<&ClusterSettings::ecn_threshold_bytes, NumberUnit::bytes>,
     "Frames are marked when the queue is longer: 64K (default: half the queue)"},
    {"greeting", "link", Reach::daemon,
     kNumberForm<&ClusterSettings::greeting_ns, NumberUnit::nanoseconds, kShortestGreeting,
                 kLongestInterval>,
     "How often neighbours greet each other: 10ms, 0 for never (default: 80ms, or more on large "
     "clusters; 10ms between hosts whose pollers spin). A link is down after three without an "
     "answer"},
    {"probing", "link", Reach::daemon,
     kNumberForm<&ClusterSettings::probing_ns, NumberUnit::nanoseconds, kShortestProbing,
                 kLongestInterval>,
     "How often servers compare the paths of flows that relays pass on, where links have a rate: "
     "100ms, 0 for never (default: 100ms, or more on large clusters)"},
    {"loss", "impair", Reach::emulated, kProbabilityForm<&ClusterSettings::loss>,
     "Probability that a switch loses a frame: 0.01"},
    {"duplicate", "impair", Reach::emulated, kProbabilityForm<&ClusterSettings::duplicate>,
     "Probability that it delivers a frame twice"},
    {"reorder", "impair", Reach::emulated, kProbabilityForm<&ClusterSettings::reorder>,
     "Probability that it delivers a frame after later ones"},
    {"corrupt", "impair", Reach::emulated, kProbabilityForm<&ClusterSettings::corrupt>,
     "Probability that it damages a frame"},
    {"seed", "impair", Reach::daemon, kNumberForm<&ClusterSettings::seed, NumberUnit::none>,
     "Seed of the switches' random numbers"},
    {"packet-memory", "engine", Reach::daemon,
     kNumberForm<&ClusterSettings::packet_memory_bytes, NumberUnit::bytes, kLeastPacketMemory,
                 kMostPacketMemory>,
     "Memory for the packets of all jobs: 512M, 4G (default: by the topology)"},
    {"lcores", "engine", Reach::daemon,
     kValueForm<&ClusterSettings::lcores, parse_lcores, lcores_text>,
     "Cores that the daemon uses: 0,1 or 0-3 (default: all that are of use)"},
    {"server-lcores", "engine", Reach::cluster,
     kNumberForm<&ClusterSettings::server_lcores, NumberUnit::none, 1, kMostServerLcores>,
     "Lcores on which each server adds up; those of --lcores where each has a daemon (default: 1)"},
    {"idle", "engine", Reach::daemon, kNameForm<&ClusterSettings::idle, kIdleNames>,
     "spin: poll without end; adaptive: sleep when there is nothing to do"},
    {"trainer-memory", "engine", Reach::daemon,
     kNumberForm<&ClusterSettings::trainer_memory_bytes, NumberUnit::bytes, kLeastTrainerMemory>,
     "Shared memory that the trainers of a user may use together: 8G (default: half of the "
     "host's)"},
    {"allow-users", "users", Reach::daemon,
     kValueForm<&ClusterSettings::allowed_users, parse_names, names_text>,
     "Other users whose trainers the daemon serves, beside its own and root's: alice,1001 "
     "(default: none)"},
    {"allow-groups", "users", Reach::daemon,
     kValueForm<&ClusterSettings::allowed_groups, parse_names, names_text>,
     "Groups whose members it serves: ml,2000 (default: none)"},
    {"user-jobs", "users", Reach::daemon,
     kNumberForm<&ClusterSettings::user_jobs, NumberUnit::none, 1, kMostUserJobs>,
     "Jobs that a user may have on each server (default: all 64; with other users 32)"},
    {"user-sessions", "users", Reach::daemon,
     kNumberForm<&ClusterSettings::user_sessions, NumberUnit::none, 1, kMostUserSessions>,
     "Trainers that a user may have connected to the daemon at a time (default: as many as it "
     "takes; with other users half of that)"},
    {"authentication", "security", Reach::cluster,
     kNameForm<&ClusterSettings::authentication, kAuthenticationNames>,
     "key: frames between daemons carry a MAC, and others are dropped; none: whoever can send "
     "frames to the cluster can change its results"},
    {"key-file", "security", Reach::daemon,
     kValueForm<&ClusterSettings::key_file, parse_key_file, key_file_text>,
     "The cluster's key, as `gradcube keygen` makes it; the same on every host (default: `gradcube "
     "up` makes one)"},
};

std::vector<std::string_view> setting_names();

// Reads one setting. Throws a UsageError when the text is not accepted, or when there is no setting
// of this name; its message begins with `where`, for example "--rate".
void apply_setting(ClusterSettings& settings, std::string_view name, std::string_view text,
                   std::string_view where);

// The first setting of emulated switches that has another value than its default; null if none has.
const Setting* given_emulation(const ClusterSettings& settings);

// Throws a UsageError unless all values are in range and fit each other and the fabric.
void validate(const ClusterSettings& settings);

// For the daemon: the settings' texts by their names. from_json throws a UsageError on what to_json
// could not have written.
nlohmann::ordered_json to_json(const ClusterSettings& settings);
ClusterSettings settings_from_json(const nlohmann::ordered_json& json);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_CLUSTER_SETTINGS_H_
