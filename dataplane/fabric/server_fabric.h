// One server's ports: what a daemon has that runs one server, and whose neighbours are other
// daemons. Who derives from it makes the ports.
//
// Link addresses are those of bcube_forwarding/neighbours.h, so who knows a server's number knows
// them, and nothing has to be discovered.
//
// A kind of port has, beside what Port has, wake_descriptor(queue), which is -1 if it has none, and
// next_event(queue); and if it has to be told that its poller sleeps, prepare_wait(queue) and
// finish_wait(queue), as a Pollable.
//
// Ownership: owns the ports. Pools, clock and pollers outlive it, the pollers until
// discard_packets() or the end.
//
// Threads: as fabric.h says.
#ifndef GRADCUBE_DATAPLANE_FABRIC_SERVER_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_SERVER_FABRIC_H_

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dataplane/fabric/fabric.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

// Whatever its ports are.
class ServerPorts : public Fabric {
 public:
  using PollerOf = std::function<Poller&(std::uint16_t queue)>;

  // Before the pollers run: lets each of them wake for the queues that it polls.
  virtual void connect(const PollerOf& poller_of) = 0;
};

template <typename KindOfPort>
class ServerFabric : public ServerPorts {
 public:
  void connect(const PollerOf& poller_of) override {
    if (ports_.empty()) return;
    for (std::uint16_t queue = 0; queue < ports_.front()->queues(); ++queue) {
      watches_.push_back(std::make_unique<QueueWatch>(ports_, queue, poller_of(queue)));
    }
  }

  std::vector<Port*> ports(bcube::ServerId server) override {
    if (server != server_) {
      throw std::invalid_argument(fmt::format("server {} has no ports in this fabric", server));
    }
    std::vector<Port*> ports;
    for (const auto& port : ports_) ports.push_back(port.get());
    return ports;
  }

  // What is under way lies elsewhere: in the kernel, in a NIC, in shared memory.
  void discard_packets() override {
    watches_.clear();
    ports_.clear();
  }

  KindOfPort& port(unsigned number) { return *ports_.at(number); }
  const KindOfPort& port(unsigned number) const { return *ports_.at(number); }

 protected:
  explicit ServerFabric(bcube::ServerId server) : server_(server) {}
  bcube::ServerId server() const { return server_; }
  // The port with the next number. Throws what its constructor throws.
  template <typename... Arguments>
  KindOfPort& add_port(Arguments&&... arguments) {
    return *ports_.emplace_back(
        std::make_unique<KindOfPort>(std::forward<Arguments>(arguments)...));
  }

 private:
  using Ports = std::vector<std::unique_ptr<KindOfPort>>;

  static constexpr bool kIsToldOfSleep = requires(KindOfPort & port) {
    port.prepare_wait(std::uint16_t{0});
  };

  // One queue of all ports, as far as time or a descriptor brings something about there.
  class QueueWatch final : public Pollable {
   public:
    QueueWatch(const Ports& ports, std::uint16_t queue, Poller& poller)
        : ports_(ports), queue_(queue), poller_(poller) {
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
      if constexpr (kIsToldOfSleep) {
        for (const auto& port : ports_) port->prepare_wait(queue_);
      }
    }
    void finish_wait() override {
      if constexpr (kIsToldOfSleep) {
        for (const auto& port : ports_) port->finish_wait(queue_);
      }
    }

   private:
    const Ports& ports_;
    std::uint16_t queue_;
    Poller& poller_;
  };

  bcube::ServerId server_;
  Ports ports_;  // by number
  std::vector<std::unique_ptr<QueueWatch>> watches_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_SERVER_FABRIC_H_
