// The relay on the ports of the embedded fabric, beside what testpmd's macswap does on DPDK's ring
// devices (net_ring). testpmd cannot be given rings that another process fills, so its loop is
// here: a burst in, the link addresses swapped, a burst out. Generator and relay are threads, on a
// core each.
//
//   bench_relay_rings CORE CORE BYTES SECONDS    of the generator, of the relay; prints
//                                                {"relay": frames per second, "macswap": the same}

#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_prefetch.h>
#include <utility>

#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/host/eal.h"
#include "tests/bench/dataplane/relay_bench.h"

namespace gradcube::dataplane::bench {
namespace {

struct Setting {
  unsigned generator = 0;  // cores
  unsigned relay = 0;
  std::vector<std::uint8_t> frame;
  double seconds = 0;
};

// A thread on an lcore of DPDK's, so that pools have a cache for it, as the relays of a daemon do.
class OnWorker {
 public:
  OnWorker(unsigned lcore, std::function<void()> iterate)
      : lcore_(lcore), iterate_(std::move(iterate)) {
    if (rte_eal_remote_launch(run, this, lcore_) != 0) throw std::runtime_error("no worker starts");
  }
  ~OnWorker() {
    stop_.store(true, std::memory_order_relaxed);
    rte_eal_wait_lcore(lcore_);
  }
  OnWorker(const OnWorker&) = delete;
  OnWorker& operator=(const OnWorker&) = delete;

 private:
  static int run(void* self) {
    auto& own = *static_cast<OnWorker*>(self);
    while (!own.stop_.load(std::memory_order_relaxed)) own.iterate_();
    return 0;
  }

  unsigned lcore_;
  std::function<void()> iterate_;
  std::atomic<bool> stop_{false};
};

double relay(const Setting& setting, unsigned lcore, PacketPool& pool) {
  const RingPortOptions options{.uplink_depth = kDepth - 1, .downlink_depth = kDepth - 1};
  RingPort first(options);
  RingPort second(options);
  TscClock clock;
  RelayUnderTest relay(first, second, clock);
  const OnWorker worker(lcore, [&] { relay.iterate(); });
  return generate(
             setting.frame, setting.seconds, pool,
             [&](rte_mbuf** burst, std::uint16_t count) {
               return first.switch_transmit(0, burst, count);
             },
             [&](rte_mbuf** burst, std::uint16_t count) {
               return second.switch_receive(0, burst, count);
             })
      .frames_per_second;
}

// A device whose frames come out of one ring and go into another.
class RingDevice {
 public:
  RingDevice(const std::string& name, PacketPool& pool)
      : in_(ring(name + "-in")), out_(ring(name + "-out")) {
    const int device = rte_eth_from_rings(name.c_str(), &in_, 1, &out_, 1, SOCKET_ID_ANY);
    const rte_eth_conf conf{};
    if (device < 0) throw std::runtime_error("DPDK makes no ring device");
    device_ = static_cast<std::uint16_t>(device);
    if (rte_eth_dev_configure(device_, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(device_, 0, kDepth, SOCKET_ID_ANY, nullptr, pool.get()) != 0 ||
        rte_eth_tx_queue_setup(device_, 0, kDepth, SOCKET_ID_ANY, nullptr) != 0 ||
        rte_eth_dev_start(device_) != 0) {
      throw std::runtime_error("DPDK's ring device does not start");
    }
  }
  ~RingDevice() {
    rte_eth_dev_stop(device_);
    rte_eth_dev_close(device_);
    for (rte_ring* ring : {in_, out_}) {
      void* packet = nullptr;
      while (rte_ring_dequeue(ring, &packet) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
      rte_ring_free(ring);
    }
  }
  RingDevice(const RingDevice&) = delete;
  RingDevice& operator=(const RingDevice&) = delete;

  std::uint16_t device() const { return device_; }
  rte_ring* in() const { return in_; }
  rte_ring* out() const { return out_; }

 private:
  static rte_ring* ring(const std::string& name) {
    rte_ring* made =
        rte_ring_create(name.c_str(), kDepth, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (made == nullptr) throw std::runtime_error("DPDK makes no ring");
    return made;
  }

  rte_ring* in_;
  rte_ring* out_;
  std::uint16_t device_ = 0;
};

void swap_addresses(rte_mbuf* packet) {
  auto* header = rte_pktmbuf_mtod(packet, rte_ether_hdr*);
  std::swap(header->src_addr, header->dst_addr);
}

// One turn of testpmd's forwarding, with its burst and its prefetch.
void swap_burst(std::uint16_t from, std::uint16_t to) {
  rte_mbuf* burst[kBurst];
  const std::uint16_t count = rte_eth_rx_burst(from, 0, burst, kBurst);
  if (count == 0) return;
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + 1 < count) rte_prefetch0(rte_pktmbuf_mtod(burst[i + 1], void*));
    swap_addresses(burst[i]);
  }
  const std::uint16_t sent = rte_eth_tx_burst(to, 0, burst, count);
  if (sent < count) rte_pktmbuf_free_bulk(burst + sent, count - sent);
}

double macswap(const Setting& setting, unsigned lcore, PacketPool& pool) {
  const RingDevice first("first", pool);
  const RingDevice second("second", pool);
  const OnWorker worker(lcore, [&] { swap_burst(first.device(), second.device()); });
  return generate(
             setting.frame, setting.seconds, pool,
             [&](rte_mbuf** burst, std::uint16_t count) {
               return static_cast<std::uint16_t>(rte_ring_sp_enqueue_burst(
                   first.in(), reinterpret_cast<void**>(burst), count, nullptr));
             },
             [&](rte_mbuf** burst, std::uint16_t count) {
               return static_cast<std::uint16_t>(rte_ring_sc_dequeue_burst(
                   second.out(), reinterpret_cast<void**>(burst), count, nullptr));
             })
      .frames_per_second;
}

int run(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_relay_rings CORE CORE BYTES SECONDS\n");
    return 2;
  }
  const Setting setting{number<unsigned>(argv[1]), number<unsigned>(argv[2]),
                        relayed_frame(number<std::uint32_t>(argv[3])), number<double>(argv[4])};
  EalOptions options;
  options.cores = {setting.relay};
  options.huge_pages = HugePages::never;
  const Eal eal(options);
  pin(setting.generator);
  PacketPool pool({.name = "frames", .count = 16383, .frame_bytes = kLongest});
  const double ours = relay(setting, eal.workers().front(), pool);
  const double peer = macswap(setting, eal.workers().front(), pool);
  std::printf("{\"relay\":%.1f,\"macswap\":%.1f}\n", ours, peer);
  return 0;
}

}  // namespace
}  // namespace gradcube::dataplane::bench

int main(int argc, char** argv) {
  try {
    return gradcube::dataplane::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_relay_rings: %s\n", error.what());
    return 1;
  }
}
