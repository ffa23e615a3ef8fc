#include "dataplane/daemon/node/node_group.h"

#include <algorithm>
#include <utility>

namespace gradcube::dataplane {

NodeGroup::NodeGroup(const control::Topology& topology, const aggregation::Kernels& kernels,
                     const NodeTiming& timing)
    : around_{{topology, kernels, departed_, quota_, {}, timing.hub_threads}, timing} {}

void NodeGroup::set_refers_to_memory() {
  around_.halt_everywhere = [this](protocol::JobId job, control::Epoch epoch) {
    for (const auto& [server, node] : nodes_) node->halt(job, epoch);
  };
}

Node& NodeGroup::add(bcube::ServerId server, control::Incarnation incarnation,
                     std::unique_ptr<NodeEngines> engines) {
  around_.here.insert(server);
  auto node = std::make_unique<Node>(server, incarnation, around_, std::move(engines));
  return *nodes_.emplace(server, std::move(node)).first->second;
}

void NodeGroup::set_key(control::KeyId key) {
  for (auto& [server, node] : nodes_) node->set_key(key);
}

void NodeGroup::remove(bcube::ServerId server) {
  nodes_.erase(server);
  around_.here.erase(server);
  stopped_.erase(server);
}

void NodeGroup::stop(bcube::ServerId server) {
  stopped_.insert(server);
  at(server).engines().stop();
}

void NodeGroup::go_on(bcube::ServerId server) {
  stopped_.erase(server);
  at(server).engines().go_on();
}

Node* NodeGroup::find(bcube::ServerId server) {
  const auto found = nodes_.find(server);
  return found == nodes_.end() ? nullptr : found->second.get();
}

std::vector<bcube::ServerId> NodeGroup::servers() const {
  std::vector<bcube::ServerId> servers;
  for (const auto& [server, node] : nodes_) servers.push_back(server);
  return servers;
}

void NodeGroup::handle(const EngineEvent& event, control::Instant now) {
  if (Node* node = find(event.server); node != nullptr) node->on_event(event, now);
}

bool NodeGroup::run(control::Instant now, const MayGoOn& may_go_on) {
  const unsigned before = std::exchange(runs_put_off_, 0);
  // What has come is heard before anyone is taken for silent.
  bool any = deliver(now, may_go_on);
  if (has_more()) runs_put_off_ = before + 1;
  for (const auto& [server, node] : nodes_) {
    if (stopped_.contains(server)) continue;
    node->greet_on_time(now);
    if (runs_put_off_ % kMostPutOff == 0) node->on_time(now);
  }
  return deliver(now, may_go_on) || any;
}

bool NodeGroup::deliver(control::Instant now, const MayGoOn& may_go_on) {
  bool any = false;
  for (const auto& [server, node] : nodes_) {
    if (!stopped_.contains(server)) any = node->take_messages(now) || any;
  }
  bool worked = true;
  while (worked) {
    // First what is quickly done, and what others wait for.
    worked = pass_on(now, may_go_on);
    for (const auto& [server, node] : nodes_) {
      if (!stopped_.contains(server)) worked = node->work(now, may_go_on) || worked;
    }
    any = any || worked;
    if (!worked || may_go_on()) continue;
    runs_put_off_ = std::max(runs_put_off_, 1U);
    break;
  }
  for (const auto& [server, node] : nodes_) node->send_carried();
  return any;
}

// What is due, or a part of it.
bool NodeGroup::pass_on(control::Instant now, const MayGoOn& may_go_on) {
  unsigned passed = 0;
  for (; passed < kLeastPassedOn || may_go_on(); ++passed) {
    if (messages().empty()) break;
    const control::NodeMessage message = std::move(messages().front());
    messages().pop_front();
    deliver(message, now);
  }
  return passed != 0;
}

void NodeGroup::deliver(const control::NodeMessage& message, control::Instant now) {
  Node* to = find(message.to);
  const bool here = to != nullptr && (!carries_all_ || message.to == message.from);
  if (here) return to->on_message(message, now);
  if (Node* from = find(message.from); from != nullptr) from->carry(message);
}

std::optional<control::Instant> NodeGroup::deadline() const {
  std::optional<control::Instant> first;
  if (!around_.messages.empty()) first = control::Instant(0);  // at once
  for (const auto& [server, node] : nodes_) {
    if (!stopped_.contains(server)) first = control::earlier(first, node->deadline());
  }
  return first;
}

void NodeGroup::answer_hubs(control::Instant now, const MayGoOn& may_go_on) {
  auto next = nodes_.lower_bound(next_for_hubs_);
  for (std::size_t i = 0; i < nodes_.size() && may_go_on(); ++i) {
    if (next == nodes_.end()) next = nodes_.begin();
    if (!stopped_.contains(next->first)) next->second->answer_hubs(now);
    ++next;
  }
  next_for_hubs_ = next == nodes_.end() ? 0 : next->first;
}

void NodeGroup::look(control::Instant now, const MayGoOn& may_go_on) {
  // The jobs of the faults that the last whole look found have been halted since.
  GuardedMemory::settle(faults_found_);
  const std::uint32_t faults = GuardedMemory::faults();
  for (const auto& [server, node] : nodes_) {
    if (!stopped_.contains(server)) node->look(now);
  }
  faults_found_ = faults;
  answer_hubs(now, may_go_on);
  departed_.reap();
  std::erase_if(around_.logged, [this](protocol::JobId job) {
    return std::ranges::none_of(nodes_,
                                [job](const auto& entry) { return entry.second->knows(job); });
  });
}

bool NodeGroup::idle() const {
  return around_.messages.empty() &&
         std::ranges::all_of(nodes_, [](const auto& entry) { return entry.second->idle(); });
}

std::vector<JobFacts> NodeGroup::jobs(control::Instant now) const {
  std::vector<MemberFacts> trainers;
  for (const auto& [server, node] : nodes_) {
    const std::vector<MemberFacts> own = node->facts();
    trainers.insert(trainers.end(), own.begin(), own.end());
  }
  std::vector<JobFacts> jobs = job_facts(trainers, servers());
  for (JobFacts& job : jobs) job.waiting_ms = waits_.milliseconds(job, now);
  return jobs;
}

std::vector<HubFacts> NodeGroup::hubs() const {
  std::vector<HubFacts> hubs;
  for (const auto& [server, node] : nodes_) {
    const std::vector<HubFacts> own = node->hubs();
    hubs.insert(hubs.end(), own.begin(), own.end());
  }
  return hubs;
}

std::uint64_t NodeGroup::trainer_bytes() const {
  std::uint64_t bytes = departed_.resident_bytes();
  for (const auto& [server, node] : nodes_) bytes += node->trainer_bytes();
  return bytes;
}

std::map<protocol::JobId, std::string> NodeGroup::job_names() const {
  std::map<protocol::JobId, std::string> names;
  for (const auto& [server, node] : nodes_) {
    for (const HubFacts& hub : node->hubs()) names[hub.call.hub.job] = hub.call.job;
    for (const MemberFacts& trainer : node->facts()) names[trainer.id] = trainer.name;
  }
  return names;
}

FrameDrops NodeGroup::dropped_messages() const {
  FrameDrops sum;
  for (const auto& [server, node] : nodes_) add_counters(sum, node->dropped_messages());
  return sum;
}

}  // namespace gradcube::dataplane
