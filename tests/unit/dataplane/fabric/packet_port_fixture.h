// Ports on the two ends of a veth, in a network namespace of the test's own, and frames for them.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_PACKET_PORT_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_PACKET_PORT_FIXTURE_H_

#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/fabric/kernel/network_interface.h"
#include "dataplane/fabric/kernel/packet_port.h"
#include "tests/unit/dataplane/fabric/network_namespace.h"
#include "tests/unit/dataplane/fabric/port_frames.h"

namespace gradcube::dataplane {

class PacketPortTest : public PortFrames {
 protected:
  void SetUp() override {
    namespace_.emplace();
    if (!namespace_->refusal().empty()) {
      GTEST_SKIP() << "this process may not make a network namespace: " << namespace_->refusal();
    }
    make_veth();
    connect();
    a_ = find_network_interface("a");
    b_ = find_network_interface("b");
    macs_ = {a_.mac, b_.mac};
  }

  void TearDown() override {
    PortFrames::TearDown();
    namespace_.reset();
  }

  static void make_veth() {
    ASSERT_TRUE(
        run("ip link add name a mtu 9000 type veth peer name b mtu 9000 && "
            "ip link set dev a addrgenmode none && ip link set dev b addrgenmode none"))
        << "is iproute2 installed?";
  }

  // Until frames pass both ways: after "up" the kernel needs a moment, and drops what comes before.
  void connect() {
    ASSERT_TRUE(run("ip link set dev a up && ip link set dev b up"));
    const RawSocket a("a");
    const RawSocket b("b");
    const std::string greeting = "\xff\xff\xff\xff\xff\xff      \x88\xb5 is anybody there?" +
                                 std::to_string(++greetings_) + std::string(30, ' ');
    for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      const auto end = std::chrono::steady_clock::now() + kPatience;
      do {
        ASSERT_LT(std::chrono::steady_clock::now(), end) << "the veth carries nothing";
        from->send(greeting);
      } while (!to->sees(greeting, std::chrono::milliseconds(10)));
    }
  }

  std::unique_ptr<PacketPort> port(const std::string& interface, PacketPortOptions options = {}) {
    options.interface = interface;
    if (options.pools.empty()) options.pools = {&buffers()};
    return std::make_unique<PacketPort>(options, clock_);
  }
  std::unique_ptr<PacketPort> port_of_queues(const std::string& interface, std::size_t queues) {
    return port(interface, {.pools = std::vector<PacketPool*>(queues, &buffers()),
                            .receive_depth = 512,
                            .transmit_depth = 16});
  }

  NetworkInterface a_;
  NetworkInterface b_;

 private:
  std::optional<NetworkNamespace> namespace_;
  unsigned greetings_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_PACKET_PORT_FIXTURE_H_
