#include "dataplane/fabric/server_fabric.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::dataplane {

// One queue of all ports, as far as time or a descriptor brings something about there.
class ServerFabric::QueueWatch final : public Pollable {
 public:
  QueueWatch(const ServerFabric& fabric, std::uint16_t queue, Poller& poller)
      : ports_(fabric.ports_), queue_(queue), poller_(poller) {
    for (const auto& port : ports_) {
      if (port->wake_descriptor(queue_) >= 0) poller_.watch(port->wake_descriptor(queue_));
    }
    poller_.add(*this, Poller::TimeBase::clock);
  }
  ~QueueWatch() override {
    poller_.remove(*this);
    for (const auto& port : ports_) {
      if (port->wake_descriptor(queue_) >= 0) poller_.unwatch(port->wake_descriptor(queue_));
    }
  }
  unsigned poll(Nanoseconds) override { return 0; }
  Nanoseconds next_event() const override {
    Nanoseconds next = kNever;
    for (const auto& port : ports_) next = std::min(next, port->next_event(queue_));
    return next;
  }
  void prepare_wait() override {
    for (const auto& port : ports_) port->prepare_wait(queue_);
  }
  void finish_wait() override {
    for (const auto& port : ports_) port->finish_wait(queue_);
  }

 private:
  const std::vector<std::unique_ptr<WakingPort>>& ports_;
  std::uint16_t queue_;
  Poller& poller_;
};

ServerFabric::ServerFabric(bcube::ServerId server) : server_(server) {}

ServerFabric::~ServerFabric() = default;

PacketPool& ServerFabric::add_pool(const PacketPoolOptions& options) {
  auto pool = std::make_shared<PacketPool>(options);
  pool_bytes_ += pool->bytes();
  PacketPool& kept = *pool;
  keep(std::move(pool));
  return kept;
}

void ServerFabric::connect(const PollerOf& poller_of) {
  if (ports_.empty()) return;
  for (std::uint16_t queue = 0; queue < ports_.front()->queues(); ++queue) {
    watches_.push_back(std::make_unique<QueueWatch>(*this, queue, poller_of(queue)));
  }
}

std::vector<Port*> ServerFabric::ports(bcube::ServerId server) {
  if (server != server_) {
    throw std::invalid_argument(fmt::format("server {} has no ports in this fabric", server));
  }
  std::vector<Port*> ports;
  for (const auto& port : ports_) ports.push_back(port.get());
  return ports;
}

void ServerFabric::discard_packets() {
  watches_.clear();
  above_.reset();
  ports_.clear();
}

}  // namespace gradcube::dataplane
