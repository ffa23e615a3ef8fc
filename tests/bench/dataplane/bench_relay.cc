// A relay on two memif links, and the generator at their other ends: two processes on a core each,
// so that testpmd can take the relay's place (scripts/bench_relay.py).
//
//   bench_relay relay SOCKET CORE                    listens, prints "ready", and relays until its
//                                                    input is closed
//   bench_relay generate SOCKET CORE BYTES SECONDS   connects, and prints {"frames_per_second",
//                                                    "refused"}
//
// The generator sends into link 0 and takes what comes out of link 1. It must be faster than what
// it measures, so it shares its packet memory with the other side, which memif's clients can do:
// all frames are copied by who forwards them.

#include <array>
#include <bit>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <poll.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <string_view>
#include <thread>
#include <unistd.h>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/memif/memif_device.h"
#include "dataplane/host/eal.h"
#include "tests/bench/dataplane/relay_bench.h"

namespace gradcube::dataplane::bench {
namespace {

constexpr std::chrono::seconds kPatience{20};

EalOptions on_core(unsigned core) {
  EalOptions options;
  options.cores = {core};
  options.huge_pages = HugePages::never;
  return options;
}

// The two links of the relay, and the ports on them.
class Links {
 public:
  Links(const std::string& socket, Clock& clock) {
    for (unsigned link = 0; link < 2; ++link) {
      MemifOptions options;
      options.socket = socket;
      options.number = link;
      options.role = MemifOptions::Role::listens;
      options.mtu = kLongest - kEthernetBytes;
      options.slots = kDepth;
      devices_[link] = std::make_unique<MemifDevice>(options);
      EthdevPortOptions of_port = devices_[link]->port_options();
      of_port.pools = {{.received = &pool_}};
      ports_[link] = std::make_unique<EthdevPort>(of_port, clock);
    }
  }

  Port& port(unsigned link) { return *ports_[link]; }

 private:
  PacketPool pool_{{.name = "frames", .count = 16383, .frame_bytes = kLongest}};
  std::array<std::unique_ptr<MemifDevice>, 2> devices_;
  std::array<std::unique_ptr<EthdevPort>, 2> ports_;  // go before their devices
};

// DPDK's environment with the generator's two links, whose frames the other side reads and writes
// where the generator has them: that takes memory that is one file, which dataplane/host/eal.h
// does not offer because nothing else needs it.
class SharedLinks {
 public:
  SharedLinks(const std::string& socket, unsigned core) {
    std::vector<std::string> arguments{"bench_relay",
                                       fmt::format("--lcores=0@{}", core),
                                       "--no-huge",
                                       "--single-file-segments",
                                       "--no-shconf",
                                       "--no-pci",
                                       "--no-telemetry",
                                       "--iova-mode=va",
                                       "-m",
                                       "256",
                                       fmt::format("--file-prefix=gradcube-bench-{}", getpid())};
    for (unsigned link = 0; link < 2; ++link) {
      arguments.push_back(fmt::format(
          "--vdev=net_memif{0},id={0},role=client,zero-copy=yes,bsize=1536,rsize={1},socket={2},"
          "socket-abstract=no",
          link, std::countr_zero(kDepth), socket));
    }
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(arguments.size()), pointers.data()) < 0) {
      throw std::runtime_error("DPDK does not start");
    }
    pool_ = std::make_unique<PacketPool>(
        PacketPoolOptions{.name = "frames", .count = 16383, .frame_bytes = kLongest});
    for (std::uint16_t device = 0; device < 2; ++device) start(device);
  }
  ~SharedLinks() {
    for (std::uint16_t device = 0; device < 2; ++device) {
      rte_eth_dev_stop(device);
      rte_eth_dev_close(device);
    }
    pool_.reset();
    rte_eal_cleanup();
  }
  SharedLinks(const SharedLinks&) = delete;
  SharedLinks& operator=(const SharedLinks&) = delete;

  PacketPool& pool() { return *pool_; }

  static bool joined() {
    for (std::uint16_t device = 0; device < 2; ++device) {
      rte_eth_link link{};
      if (rte_eth_link_get_nowait(device, &link) != 0 || link.link_status == 0) return false;
    }
    return true;
  }

 private:
  void start(std::uint16_t device) {
    const rte_eth_conf conf{};
    if (rte_eth_dev_configure(device, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(device, 0, kDepth, SOCKET_ID_ANY, nullptr, pool_->get()) != 0 ||
        rte_eth_tx_queue_setup(device, 0, kDepth, SOCKET_ID_ANY, nullptr) != 0 ||
        rte_eth_dev_start(device) != 0) {
      throw std::runtime_error("a memif does not start");
    }
  }

  std::unique_ptr<PacketPool> pool_;
};

int generate_over(const std::string& socket, unsigned core, std::uint32_t bytes, double seconds) {
  SharedLinks links(socket, core);
  pin(core);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!SharedLinks::joined()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nobody listens");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const Measured measured = generate(
      relayed_frame(bytes), seconds, links.pool(),
      [](rte_mbuf** burst, std::uint16_t count) { return rte_eth_tx_burst(0, 0, burst, count); },
      [](rte_mbuf** burst, std::uint16_t count) { return rte_eth_rx_burst(1, 0, burst, count); });
  std::printf("{\"frames_per_second\":%.1f,\"refused\":%.4f}\n", measured.frames_per_second,
              measured.refused);
  return 0;
}

int relay_over(const std::string& socket, unsigned core) {
  const Eal eal(on_core(core));
  TscClock clock;
  Links links(socket, clock);
  RelayUnderTest relay(links.port(0), links.port(1), clock);
  pin(core);
  std::printf("ready\n");
  std::fflush(stdout);
  constexpr unsigned kIterations = 100'000;  // between looks at the input
  for (pollfd input{STDIN_FILENO, POLLIN, 0}; poll(&input, 1, 0) == 0;) {
    for (unsigned i = 0; i < kIterations; ++i) relay.iterate();
  }
  return relay.relayed() == 0 ? 1 : 0;
}

int run(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "generate" && argc == 6) {
    return generate_over(argv[2], number<unsigned>(argv[3]), number<std::uint32_t>(argv[4]),
                         number<double>(argv[5]));
  }
  if (what == "relay" && argc == 4) return relay_over(argv[2], number<unsigned>(argv[3]));
  std::fprintf(stderr,
               "usage: bench_relay relay SOCKET CORE | generate SOCKET CORE BYTES SECONDS\n");
  return 2;
}

}  // namespace
}  // namespace gradcube::dataplane::bench

int main(int argc, char** argv) {
  try {
    return gradcube::dataplane::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_relay: %s\n", error.what());
    return 1;
  }
}
