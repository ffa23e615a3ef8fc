// One core carries packets from a server's port through the emulated switch to another server's
// port, as engine and switch share an lcore in an embedded cluster. The packets go round (what
// arrives is sent again), so that nothing but the fabric is measured. They pass by reference: bytes
// per second say how much a fabric could carry, not how much memory was moved. "limited" takes the
// way with a rate, a bounded queue and marks, at a rate that never holds a packet back.

#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "dataplane/fabric/emulated/emulated_switch.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/eal.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint16_t kBurst = 32;
constexpr std::uint64_t kMac = 0x024700000000;

void address(rte_mbuf* packet, std::uint64_t server) {
  auto* bytes = rte_pktmbuf_mtod(packet, unsigned char*);
  for (int i = 0; i < 6; ++i)
    bytes[i] = static_cast<unsigned char>((kMac + server) >> (40 - 8 * i));
}

// Two servers at a switch of `ports` ports play ping-pong with a burst of packets.
void through_the_switch(benchmark::State& state, const EmulatedSwitchOptions& options) {
  const auto bytes = static_cast<std::uint16_t>(state.range(0));
  const auto ports = static_cast<std::uint16_t>(state.range(1));
  PacketPoolOptions pool_options;
  pool_options.name = "bench";
  pool_options.count = 4095;
  pool_options.frame_bytes = 9216;
  PacketPool pool(pool_options);
  RingPortOptions port_options;
  port_options.mtu = 9000;
  std::vector<std::unique_ptr<RingPort>> servers;
  std::vector<SwitchPort> cables;
  for (std::uint64_t server = 0; server < ports; ++server) {
    servers.push_back(std::make_unique<RingPort>(port_options));
    cables.push_back({servers.back().get(), {kMac + server}});
  }
  EmulatedSwitch fabric(options, cables, nullptr);
  SwitchShard& shard = fabric.shard(0);
  TscClock clock;

  rte_mbuf* burst[kBurst];
  if (!pool.allocate(burst, kBurst)) return state.SkipWithError("the pool is empty");
  for (rte_mbuf* packet : burst) {
    std::memset(rte_pktmbuf_append(packet, bytes), 0, bytes);
    address(packet, 1);
  }
  std::uint64_t packets = 0;
  servers[0]->transmit(0, burst, kBurst);
  std::uint16_t at = 0;
  for (auto _ : state) {
    shard.poll(clock.now());
    const auto to = static_cast<std::uint16_t>(1 - at);
    const std::uint16_t count = servers[to]->receive(0, burst, kBurst);
    for (std::uint16_t i = 0; i < count; ++i) address(burst[i], at);
    servers[to]->transmit(0, burst, count);
    packets += count;
    at = to;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.SetBytesProcessed(static_cast<std::int64_t>(packets * bytes));
}

void unshaped(benchmark::State& state) { through_the_switch(state, {}); }

void limited(benchmark::State& state) {
  EmulatedSwitchOptions options;
  options.profile = {.bits_per_second = 100'000'000'000'000,
                     .delay = 0,
                     .queue_bytes = 1'000'000,
                     .mark_bytes = 500'000};
  through_the_switch(state, options);
}

void register_benchmarks() {
  for (const std::int64_t ports : {2, 8}) {
    for (const std::int64_t bytes : {64, 8192}) {
      benchmark::RegisterBenchmark("port_switch_port/unshaped", unshaped)
          ->Args({bytes, ports})
          ->ArgNames({"bytes", "ports"});
      benchmark::RegisterBenchmark("port_switch_port/limited", limited)
          ->Args({bytes, ports})
          ->ArgNames({"bytes", "ports"});
    }
  }
}

}  // namespace
}  // namespace gradcube::dataplane

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  try {
    gradcube::dataplane::EalOptions options;
    options.cores = {gradcube::dataplane::usable_cores().front()};
    const gradcube::dataplane::Eal eal(options);
    gradcube::dataplane::register_benchmarks();
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_fabric: %s\n", error.what());
    return 1;
  }
  return 0;
}
