#include "dataplane/daemon/local_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "control/base/errors.h"
#include "control/jobs/message_codec.h"
#include "control/plan/algorithms.h"
#include "control/settings/cluster_fingerprint.h"
#include "dataplane/daemon/cabling.h"
#include "dataplane/daemon/embedded_sizing.h"
#include "dataplane/daemon/engine_assignment.h"
#include "dataplane/daemon/switch_requests.h"

namespace gradcube::dataplane {

static_assert(control::kMostUserJobs == control::kMaxJobs, "a user may have all");

namespace {

// Of packets that are there at the start, at each poller, where other processes would take this one
// for silent while it gets memory for its first jobs: those of eight jobs of a BCube(3,2), with
// their messages; some 15 MB with a large MTU.
constexpr std::uint32_t kReadySegments = 1536;

protocol::SettingsDigest digest_of(const control::ClusterSettings& settings,
                                   const FabricParameters& parameters, Payloads payloads) {
  const control::DaemonChoices choices{.message_format = control::kMessageFormat,
                                       .segment_bytes = parameters.segment_bytes,
                                       .block_bytes = parameters.block_bytes,
                                       .greeting_ns = parameters.greeting_interval,
                                       .checksums = payloads == Payloads::copied};
  return {control::cluster_fingerprint(settings, choices), static_cast<std::uint16_t>(settings.mtu),
          settings.rates.slowest()};
}

NodeTiming with_silence(NodeTiming timing, Nanoseconds silent_after) {
  timing.greetings.silent_after =
      std::chrono::duration_cast<control::Instant>(std::chrono::nanoseconds(silent_after));
  return timing;
}

Payloads payloads_of(const LocalClusterOptions& options) {
  return options.driver != nullptr ? Payloads::copied : Payloads::referenced;
}

Steering steering_of(const LocalClusterOptions& options) {
  if (options.driver != nullptr) return options.driver->steering;
  return options.replace_ports ? Steering::uncertain : Steering::certain;
}

}  // namespace

LocalCluster::LocalCluster(const LocalClusterOptions& options, Clock& clock,
                           const aggregation::Kernels& kernels, EventSink& events)
    : settings_(options.settings),
      secret_(options.secret),
      keys_(options.key.has_value() ? std::make_unique<ClusterKeys>(*options.key) : nullptr),
      topology_(settings_.rated_topology()),
      servers_(options.servers.empty() ? space().server_list() : options.servers),
      kernels_(kernels),
      events_(events),
      default_algorithm_(control::default_algorithm_of_jobs(
          topology_, control::place_on_trainers_servers(topology_, settings_.aggregators))),
      assignment_(engine_assignment(topology_.whole(), options.lcores)),
      parameters_(fabric_parameters(settings_, payloads_of(options))),
      steering_(steering_of(options)),
      digest_(digest_of(settings_, parameters_, payloads_of(options))),
      driver_(options.driver),
      replace_ports_(options.replace_ports) {
  make_pollers(options.lcores, payloads_of(options), clock);
  share_packet_memory();
  nodes_ = std::make_unique<NodeGroup>(topology_, kernels_,
                                       with_silence(options.timing, parameters_.silent_after));
  NodeSurroundings& around = nodes_->around();
  around.servers_per_core = servers_per_core();
  around.aggregators = settings_.aggregators;
  around.secret = secret_;
  around.jobs_per_user = settings_.jobs_per_user();
  around.share = settings_.share();
  around.ports_say = [this](bcube::ServerId server) { return ports_say(server); };
  around.cut_off = [this](bcube::ServerId server) {
    const Node* node = nodes_->find(server);
    return node != nullptr && node->engines().cut_off();
  };
  if (driver_ != nullptr) {
    make_server_ports(options, clock);
  } else {
    embed_fabric(options);
  }
}

// All packets are freed before the nodes' group goes, and with it the trainers' memory: those on
// their way may still point into that.
LocalCluster::~LocalCluster() {
  for (const bcube::ServerId server : servers_) nodes_->remove(server);
  fabric_->discard_packets();
}

// With the fabric, its nodes.
void LocalCluster::embed_fabric(const LocalClusterOptions& options) {
  emulated_ = std::make_unique<EmbeddedFabric>(
      embedded_fabric_options(settings_, parameters_, queues(), servers_));
  fabric_ = emulated_.get();
  emulated_->on_corruption([this] { demand_checksums(); });
  std::vector<Poller*> all;
  for (const auto& poller : pollers_) all.push_back(poller.get());
  emulated_->connect(
      [this](bcube::ServerId server, std::uint16_t queue) -> Poller& {
        return *pollers_[poller_of(server, queue)];
      },
      all);
  nodes_->around().greet_each_other = options.nodes_greet_each_other;
  // Those that greet each other stand for processes of their own.
  if (!options.nodes_greet_each_other) nodes_->set_refers_to_memory();
  if (options.messages_pass_the_fabric) send_messages_in_frames(true);
  for (const bcube::ServerId server : servers_) start_node(server, options.incarnation);
  emulated_->set_impairments({.loss = settings_.loss,
                              .duplicate = settings_.duplicate,
                              .reorder = settings_.reorder,
                              .corrupt = settings_.corrupt});
}

// With the ports, the server's node.
void LocalCluster::make_server_ports(const LocalClusterOptions& options, Clock& clock) {
  const bcube::ServerId server = servers_.front();
  PortsRequest request{
      .settings = settings_, .server = server, .names = options.ports, .received = {}};
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    request.received.push_back(memories_[poller_of(server, queue)]->received());
  }
  server_fabric_ = driver_->make(request, clock);
  fabric_ = server_fabric_.get();
  server_fabric_->connect([this, server](std::uint16_t queue) -> Poller& {
    return *pollers_[poller_of(server, queue)];
  });
  send_messages_in_frames(false);
  announces_ = true;
  start_node(server, options.incarnation);
  demand_checksums();
}

nlohmann::ordered_json LocalCluster::impair(const nlohmann::json& request) {
  if (emulated_ == nullptr) throw control::UsageError(driver_->impair_advice);
  return dataplane::impair(*emulated_, topology_, request, settings_.seed);
}

nlohmann::ordered_json LocalCluster::switches_report() const {
  if (emulated_ == nullptr) return {{"switches", nlohmann::ordered_json::array()}};
  return dataplane::switches_report(*emulated_, settings_.seed);
}

std::vector<Port*> LocalCluster::ports_of(bcube::ServerId server) {
  const std::vector<Port*> ports = fabric_->ports(server);
  return replace_ports_ ? replace_ports_(server, ports) : ports;
}

std::string LocalCluster::ports_say(bcube::ServerId server) {
  const Node* node = nodes_->find(server);
  if (node == nullptr) return "";
  std::vector<std::string> texts;
  for (const auto& [port, wrong] : wrong_ports(space(), node->engines().all())) {
    texts.push_back(wrong.text);
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

// Before the nodes start. between_nodes_here: those of nodes of this process, too.
void LocalCluster::send_messages_in_frames(bool between_nodes_here) {
  message_frames_ = std::make_unique<PacketPool>(message_pool(settings_.mtu_of_frames()));
  nodes_->carry_messages({message_frames_.get(), full_frame_bytes(settings_.mtu_of_frames()),
                          fingerprint(), keys_ == nullptr ? nullptr : &keys_->of_servers()},
                         between_nodes_here);
}

void LocalCluster::make_pollers(const std::vector<control::Lcore>& lcores, Payloads payloads,
                                Clock& clock) {
  std::map<unsigned, unsigned> threads_on;  // by lcore
  for (const bcube::ServerId server : servers_) {
    for (unsigned t = 0; t < assignment_.threads(); ++t) ++threads_on[assignment_.lcore(server, t)];
  }
  const auto pollers = static_cast<unsigned>(threads_on.size());
  std::vector<PacketSizes> sizes;
  for (const auto& [id, numa_node] : lcores) {
    if (!threads_on.contains(id)) continue;
    pollers_.push_back(std::make_unique<Poller>(clock, settings_.idle));
    poller_lcores_.push_back(id);
    poller_numa_nodes_.push_back(numa_node);
    sizes.push_back(packet_sizes(settings_, pollers, threads_on[id], payloads, steering_));
  }
  make_packet_memory(sizes, payloads);
}

// sizes: by poller.
void LocalCluster::make_packet_memory(const std::vector<PacketSizes>& sizes, Payloads payloads) {
  std::uint32_t all_segments = 0;
  for (const PacketSizes& one : sizes) all_segments += one.segments;
  std::vector<PacketMemory*> memories;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    PacketMemoryOptions options{std::to_string(poller_lcores_[i]), sizes[i].segments,
                                sizes[i].answers, sizes[i].idle, poller_numa_nodes_[i]};
    if (payloads == Payloads::copied) {
      options.received_frame_bytes = full_frame_bytes(settings_.mtu_of_frames());
      options.received_beside = sizes[i].received_beside;
      if (steering_ == Steering::uncertain) options.received_segments = all_segments;
    }
    memories_.push_back(std::make_unique<PacketMemory>(options, *pollers_[i]));
    memories.push_back(memories_.back().get());
  }
  if (steering_ == Steering::uncertain) PacketMemory::receive_for_each_other(memories);
  if (payloads == Payloads::copied) PacketMemory::make_ready(memories, kReadySegments);
}

void LocalCluster::share_packet_memory() {
  std::vector<std::uint32_t> engines_on(pollers_.size(), 0);
  for (const bcube::ServerId server : servers_) {
    for (const auto& engine : assignment_.engines(server)) ++engines_on[poller_on(engine.lcore)];
  }
  for (const bcube::ServerId server : servers_) {
    for (const auto& engine : assignment_.engines(server)) {
      const std::size_t where = poller_on(engine.lcore);
      const auto all = static_cast<std::uint32_t>(memories_[where]->most());
      shares_[server].push_back(&memories_[where]->add_share(all / engines_on[where]));
    }
  }
}

// Servers of other processes may share cores with more or fewer, and all must say the same.
unsigned LocalCluster::servers_per_core() const {
  if (servers_.size() < space().servers()) return 1;
  return static_cast<unsigned>((servers_.size() + pollers_.size() - 1) / pollers_.size());
}

// Of each server; the same for all.
std::uint16_t LocalCluster::queues() const {
  return static_cast<std::uint16_t>(assignment_.engines(servers_.front()).size());
}

std::size_t LocalCluster::poller_of(bcube::ServerId server, std::uint16_t queue) const {
  return poller_on(assignment_.engines(server)[queue].lcore);
}

std::size_t LocalCluster::poller_on(unsigned lcore) const {
  return static_cast<std::size_t>(std::ranges::find(poller_lcores_, lcore) -
                                  poller_lcores_.begin());
}

std::vector<EnginePlace> LocalCluster::places(bcube::ServerId server,
                                              control::Incarnation incarnation) const {
  std::vector<EnginePlace> places;
  const auto engines = assignment_.engines(server);
  for (const control::EngineAssignment& assigned : engines) {
    EnginePlace& place = places.emplace_back();
    place.settings.server = server;
    place.settings.queue = static_cast<std::uint16_t>(assigned.queue);
    place.settings.threads = assigned.threads;
    place.settings.engines = static_cast<unsigned>(engines.size());
    place.settings.segment_bytes = parameters_.segment_bytes;
    place.settings.block_bytes = parameters_.block_bytes;
    place.settings.window = parameters_.window;
    place.settings.flows = parameters_.flows;
    place.settings.greetings.digest = digest_;
    place.settings.greetings.announces = announces_;
    place.settings.greetings.first_number = incarnation;
    place.settings.greetings.padded_bytes = full_frame_bytes(settings_.mtu_of_frames());
    place.settings.greetings.padded_sixteenths = parameters_.padded_sixteenths;
    place.settings.greetings.padded_time = parameters_.padded_time;
    if (parameters_.greeting_interval != 0) {
      // On the way to a neighbour and back there are four links.
      place.settings.greetings.intervals_on_the_way =
          4 * settings_.delay_ns / static_cast<std::uint64_t>(parameters_.greeting_interval);
    }
    place.settings.keys = keys_.get();
    place.settings.greetings.keys = keys_ == nullptr ? nullptr : &keys_->of_servers();
    place.settings.probing_interval = parameters_.probing_interval;
    // Another one for each engine, and each time.
    place.settings.probing_seed =
        settings_.seed + incarnation +
        (std::uint64_t{server} << 40 | std::uint64_t{assigned.queue} << 56);
    place.settings.hash_key = secret_ + incarnation + server;
    for (unsigned level = 0; level < space().levels(); ++level) {
      place.settings.bits_per_second.push_back(settings_.rates.of_port(server, level));
    }
    if (assigned.queue == 0) place.settings.greetings.interval = parameters_.greeting_interval;
    const std::size_t where = poller_on(assigned.lcore);
    place.poller = pollers_[where].get();
    place.memory = memories_[where].get();
    place.packets = shares_.at(server)[assigned.queue];
    place.numa_node = poller_numa_nodes_[where];
  }
  return places;
}

std::optional<std::string_view> LocalCluster::authentication() const {
  if (!nodes_->carries_messages()) return std::nullopt;
  return control::authentication_name(settings_.authentication);
}

void LocalCluster::exchange_keys() {
  keys_->exchange();
  nodes_->set_key(keys_->own_id());
}

// Between two iterations no engine is at work with it.
void LocalCluster::drop_other_key() {
  keys_->refuse_other();
  for (const std::unique_ptr<Poller>& poller : pollers_) {
    poller->call([] {});
  }
  keys_->forget_other();
}

void LocalCluster::start_node(bcube::ServerId server, control::Incarnation incarnation) {
  auto engines = std::make_unique<NodeEngines>(
      space(), server, ports_of(server), credit_of(settings_, parameters_, server),
      places(server, incarnation), events_, nodes_->carries_messages(), steering_);
  if (checksums_demanded_) {
    on_each(engines->all(), [](const EngineAt& at) { at.engine->set_checksums(true, true); });
  }
  nodes_->add(server, incarnation, std::move(engines));
}

std::vector<EngineAt> LocalCluster::engines() const {
  std::vector<EngineAt> all;
  for (const bcube::ServerId server : nodes_->servers()) {
    const std::vector<EngineAt>& own = engines(server);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void LocalCluster::set_checksums(bool send, bool demand) {
  on_each(engines(), [=](const EngineAt& at) { at.engine->set_checksums(send, demand); });
}

// From now on all frames carry a checksum and are refused without. The order matters: every sender
// must seal before a receiver demands it, and every receiver must look before a frame may be
// damaged. Frames that are on their way without a checksum when the demand begins are dropped and
// sent again.
void LocalCluster::demand_checksums() {
  set_checksums(true, false);
  set_checksums(true, true);
  checksums_demanded_ = true;
}

std::uint64_t LocalCluster::pool_bytes() const {
  std::uint64_t bytes = fabric_->pool_bytes();
  if (message_frames_ != nullptr) bytes += message_frames_->bytes();
  for (const auto& memory : memories_) bytes += memory->bytes();
  return bytes;
}

std::uint64_t LocalCluster::reserved_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& memory : memories_) bytes += memory->reserved() * memory->bytes_of_segment();
  return bytes;
}

std::uint64_t LocalCluster::reservable_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& memory : memories_) bytes += memory->most() * memory->bytes_of_segment();
  return bytes;
}

}  // namespace gradcube::dataplane
