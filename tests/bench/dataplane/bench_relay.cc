// A relay on two memif links, and the generator at their other ends: two processes on a core each,
// so that testpmd can take the relay's place (scripts/bench_relay.py).
//
//   bench_relay generate SOCKET CORE BYTES SECONDS   listens, prints {"frames_per_second",
//                                                    "refused"} once somebody has forwarded
//   bench_relay relay SOCKET CORE                    connects and relays until its input is closed
//
// The generator sends into link 0 and takes what comes out of link 1.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <poll.h>
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

// The two devices of one side, and the ports on them.
class Links {
 public:
  Links(const std::string& socket, MemifOptions::Role role, Clock& clock) {
    for (unsigned link = 0; link < 2; ++link) {
      MemifOptions options;
      options.socket = socket;
      options.number = link;
      options.role = role;
      options.mtu = kLongest - kEthernetBytes;
      options.slots = kDepth;
      devices_[link] = std::make_unique<MemifDevice>(options);
      EthdevPortOptions of_port = devices_[link]->port_options();
      of_port.pools = {{.received = &pool_}};
      numbers_[link] = of_port.device;
      ports_[link] = std::make_unique<EthdevPort>(of_port, clock);
    }
  }

  Port& port(unsigned link) { return *ports_[link]; }
  std::uint16_t device(unsigned link) const { return numbers_[link]; }
  PacketPool& pool() { return pool_; }
  bool joined() const { return ports_[0]->has_link() && ports_[1]->has_link(); }

 private:
  PacketPool pool_{{.name = "frames", .count = 16383, .frame_bytes = kLongest}};
  std::array<std::unique_ptr<MemifDevice>, 2> devices_;
  std::array<std::uint16_t, 2> numbers_{};
  std::array<std::unique_ptr<EthdevPort>, 2> ports_;  // go before their devices
};

int generate_over(const std::string& socket, unsigned core, std::uint32_t bytes, double seconds) {
  const Eal eal(on_core(core));
  TscClock clock;
  Links links(socket, MemifOptions::Role::listens, clock);
  pin(core);
  std::printf("ready\n");
  std::fflush(stdout);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!links.joined()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nobody connects");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const Measured measured = generate(
      relayed_frame(bytes), seconds, links.pool(),
      [&](rte_mbuf** burst, std::uint16_t count) {
        return rte_eth_tx_burst(links.device(0), 0, burst, count);
      },
      [&](rte_mbuf** burst, std::uint16_t count) {
        return rte_eth_rx_burst(links.device(1), 0, burst, count);
      });
  std::printf("{\"frames_per_second\":%.1f,\"refused\":%.4f}\n", measured.frames_per_second,
              measured.refused);
  return 0;
}

int relay_over(const std::string& socket, unsigned core) {
  const Eal eal(on_core(core));
  TscClock clock;
  Links links(socket, MemifOptions::Role::connects, clock);
  RelayUnderTest relay(links.port(0), links.port(1), clock);
  pin(core);
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
               "usage: bench_relay generate SOCKET CORE BYTES SECONDS | relay SOCKET CORE\n");
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
