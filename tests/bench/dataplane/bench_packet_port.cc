// Frames per second over a veth, from a PacketPort to another, beside DPDK's driver for packet
// sockets (net_af_packet) on both ends. One thread sends a burst and receives what has arrived, as
// a poller does; the kernel's work in between is part of the figure. DPDK's driver takes no frames
// above 1518 bytes.
//
//   bench_packet_port        as root: it makes a network namespace of its own, and needs iproute2

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <stdexcept>
#include <string>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/kernel/packet_port.h"
#include "dataplane/host/eal.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint16_t kBurst = 32;
constexpr std::chrono::seconds kTime{1};

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("this failed: " + command);
}

// A frame of Gradcube's between the ends of the veth.
std::string frame(std::uint32_t bytes) {
  std::string whole(bytes, 'x');
  protocol::LinkAddresses link;
  link.source_mac = find_network_interface("a").mac;
  link.destination_mac = find_network_interface("b").mac;
  protocol::SegmentHeader segment;
  segment.length = static_cast<std::uint16_t>(bytes - protocol::kSegmentHeaderBytes);
  protocol::encode_frame({reinterpret_cast<std::uint8_t*>(whole.data()), whole.size()}, link, {},
                         {}, &segment);
  return whole;
}

using Transfer = std::function<std::uint16_t(rte_mbuf**, std::uint16_t)>;

void measure(const char* name, std::uint32_t bytes, PacketPool& pool, const Transfer& transmit,
             const Transfer& receive) {
  const std::string model = frame(bytes);
  std::uint64_t received = 0;
  rte_mbuf* burst[kBurst];
  const auto begin = std::chrono::steady_clock::now();
  auto now = begin;
  for (; now - begin < kTime; now = std::chrono::steady_clock::now()) {
    if (pool.allocate(burst, kBurst)) {
      for (rte_mbuf* packet : burst) {
        std::memcpy(rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes)), model.data(),
                    bytes);
      }
      const std::uint16_t sent = transmit(burst, kBurst);
      for (std::uint16_t i = sent; i < kBurst; ++i) rte_pktmbuf_free(burst[i]);
    }
    const std::uint16_t count = receive(burst, kBurst);
    for (std::uint16_t i = 0; i < count; ++i) rte_pktmbuf_free(burst[i]);
    received += count;
  }
  const double seconds = std::chrono::duration<double>(now - begin).count();
  const double rate = static_cast<double>(received) / seconds;
  std::printf("%-22s %5u bytes  %8.3f M frames/s  %6.2f Gb/s\n", name, bytes, rate / 1e6,
              rate * bytes * 8 / 1e9);
}

void measure_packet_port(std::uint32_t bytes, PacketPool& pool) {
  TscClock clock;
  PacketPort a({.interface = "a", .mtu = bytes - kEthernetBytes, .pools = {&pool}}, clock);
  PacketPort b({.interface = "b", .mtu = bytes - kEthernetBytes, .pools = {&pool}}, clock);
  measure(
      "PacketPort", bytes, pool,
      [&](rte_mbuf** burst, std::uint16_t count) { return a.transmit(0, burst, count); },
      [&](rte_mbuf** burst, std::uint16_t count) { return b.receive(0, burst, count); });
}

// One end of the veth under DPDK's driver.
class Driver {
 public:
  Driver(const std::string& interface, PacketPool& pool) : name_("net_af_packet_" + interface) {
    const std::string arguments =
        "iface=" + interface + ",framesz=2048,blocksz=65536,framecnt=1024";
    const rte_eth_conf conf{};
    if (rte_eal_hotplug_add("vdev", name_.c_str(), arguments.c_str()) != 0 ||
        rte_eth_dev_get_port_by_name(name_.c_str(), &port_) != 0 ||
        rte_eth_dev_configure(port_, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(port_, 0, 0, SOCKET_ID_ANY, nullptr, pool.get()) != 0 ||
        rte_eth_tx_queue_setup(port_, 0, 0, SOCKET_ID_ANY, nullptr) != 0 ||
        rte_eth_dev_start(port_) != 0) {
      throw std::runtime_error("DPDK's af_packet driver does not start on " + interface);
    }
  }
  ~Driver() { rte_eal_hotplug_remove("vdev", name_.c_str()); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  std::uint16_t transmit(rte_mbuf** burst, std::uint16_t count) {
    return rte_eth_tx_burst(port_, 0, burst, count);
  }
  std::uint16_t receive(rte_mbuf** burst, std::uint16_t count) {
    return rte_eth_rx_burst(port_, 0, burst, count);
  }

 private:
  std::string name_;
  std::uint16_t port_ = 0;
};

void measure_driver(std::uint32_t bytes, PacketPool& pool) {
  Driver a("a", pool);
  Driver b("b", pool);
  measure(
      "DPDK's net_af_packet", bytes, pool,
      [&](rte_mbuf** burst, std::uint16_t count) { return a.transmit(burst, count); },
      [&](rte_mbuf** burst, std::uint16_t count) { return b.receive(burst, count); });
}

void measure_all() {
  EalOptions options;
  options.cores = {usable_cores().front()};
  const Eal eal(options);
  if (unshare(CLONE_NEWNET) != 0) {
    throw std::runtime_error("this process may not make a network namespace: run it as root");
  }
  run("ip link add name a mtu 9000 type veth peer name b mtu 9000 && "
      "ip link set dev a addrgenmode none up && ip link set dev b addrgenmode none up && sleep 1");
  PacketPool pool({.name = "bench", .count = 8191, .frame_bytes = 9014});
  for (int round = 0; round < 3; ++round) {
    measure_driver(1514, pool);
    measure_packet_port(1514, pool);
    measure_packet_port(9014, pool);
  }
}

}  // namespace
}  // namespace gradcube::dataplane

int main() {
  try {
    gradcube::dataplane::measure_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_packet_port: %s\n", error.what());
    return 1;
  }
  return 0;
}
