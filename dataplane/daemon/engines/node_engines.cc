#include "dataplane/daemon/engines/node_engines.h"

#include <algorithm>
#include <utility>

#include "bcube_forwarding/path_set.h"
#include "dataplane/host/memory_placement.h"

namespace gradcube::dataplane {

namespace {

std::unique_ptr<HandOver> make_hand_over(const std::vector<EnginePlace>& places,
                                         Steering steering) {
  if (steering == Steering::certain || places.size() < 2) return nullptr;
  std::vector<Doorbell*> doorbells;
  for (const EnginePlace& place : places) doorbells.push_back(&place.poller->doorbell());
  return std::make_unique<HandOver>(std::move(doorbells));
}

}  // namespace

NodeEngines::NodeEngines(const bcube::AddressSpace& space, bcube::ServerId server,
                         const std::vector<Port*>& ports,
                         const std::vector<protocol::CreditSettings>& credit,
                         const std::vector<EnginePlace>& places, EventSink& events,
                         bool hears_others, Steering steering)
    : space_(space),
      server_(server),
      links_(space),
      inbox_(hears_others ? std::make_unique<MessageInbox>() : nullptr),
      hand_over_(make_hand_over(places, steering)) {
  std::vector<EnginePort> with_credit;
  for (unsigned port = 0; port < ports.size(); ++port) {
    with_credit.push_back(
        {ports[port], &credit_.emplace_back(credit.at(space.level_of_port(port)))});
  }
  std::vector<int> numa_nodes;
  for (const EnginePlace& place : places) {
    numa_nodes.push_back(place.numa_node);
    const EnginePools pools{place.memory->segments(), place.memory->answers()};
    EngineSettings settings = place.settings;
    settings.links = &links_;
    settings.urgency = &place.poller->urgency();
    settings.inbox = inbox_.get();
    settings.hand_over = hand_over_.get();
    for (const EnginePlace& other : places) {
      if (other.poller != place.poller) settings.siblings.push_back(&other.poller->doorbell());
    }
    engines_.push_back(std::make_unique<Engine>(settings, space, with_credit, pools, events));
    const auto& threads = place.settings.threads;
    const bool leader = std::ranges::find(threads, 0U) != threads.end();
    all_.push_back({engines_.back().get(), place.poller, place.packets, leader});
  }
  numa_node_ = common_numa_node(numa_nodes);
  go_on();
}

NodeEngines::~NodeEngines() { stop(); }

void NodeEngines::stop() {
  if (!running_) return;
  running_ = false;
  on_each(all_, [](const EngineAt& at) { at.poller->remove(*at.engine); });
  if (hand_over_ != nullptr) hand_over_->discard();
}

void NodeEngines::go_on() {
  if (running_) return;
  running_ = true;
  on_each(all_, [](const EngineAt& at) { at.poller->add(*at.engine, Poller::TimeBase::attended); });
}

bool NodeEngines::reaches(bcube::ServerId server) const {
  const auto works = [this](bcube::ServerId from, bcube::Hop hop) {
    return from != server_ || links_.up(hop);
  };
  const auto paths = bcube::parallel_paths(space_, server_, server, works);
  return server == server_ || std::ranges::any_of(paths, [&](const auto& path) {
           return path.size() <= bcube::most_hops(space_);
         });
}

bool NodeEngines::cut_off() const {
  bool has_links = false;
  for (unsigned level = 0; level < space_.levels(); ++level) {
    for (unsigned digit = 0; digit < space_.hop_digits(level); ++digit) {
      if (!space_.joins(level, space_.digit(server_, level), digit) ||
          space_.is_absent(space_.with_digit(server_, level, digit))) {
        continue;
      }
      if (links_.up({static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)})) {
        return false;
      }
      has_links = true;
    }
  }
  return has_links;
}

NeighbourNumbers NodeEngines::neighbour(bcube::Hop hop) const {
  NeighbourNumbers sum;
  for (const EngineAt& at : all_) sum += at.engine->neighbour(hop);
  return sum;
}

}  // namespace gradcube::dataplane
