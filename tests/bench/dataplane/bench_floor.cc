// What the arithmetic of an all-reduce takes by itself: the additions and copies that the plan
// makes of 100 MB of float32 on the nine servers of bcube:3,2, in the memory of nine sessions, with
// no packet, queue or flow. A cluster without a rate can be as fast as this, and not faster.
//
//   bench_floor [--json]
//
// Plan thread t runs on core t modulo the cores, for all servers, as in the daemon. It takes some
// segments of every block through all its steps, then the next of every block. What one step leaves
// in the cache is there for the next step, if it is little enough:
//
//   in_cache    one segment of every block at a time; nothing can be faster
//   in_windows  as many as an engine's window lets flow ahead: what the cache does for the daemon
//   by_stage    all of a step, then the next: the cache helps nothing
//
// A round is one all-reduce; the figures are medians of several, in seconds.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "aggregation/kernels.h"
#include "control/plan/algorithms.h"
#include "control/plan/collective_layout.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/engine/memory/session_region.h"
#include "dataplane/host/eal.h"

namespace gradcube {
namespace {

constexpr std::uint64_t kBytes = 100'000'000;
constexpr unsigned kRounds = 5;

// The gradients of all servers: small whole numbers, so that the sum is exact.
class Gradients {
 public:
  explicit Gradients(unsigned servers) {
    for (unsigned server = 0; server < servers; ++server) {
      regions_.emplace_back(kBytes);
      float* elements = this->elements(server);
      for (std::size_t i = 0; i < kElements; ++i) {
        elements[i] = static_cast<float>(server) + static_cast<float>(i % 7);
      }
    }
  }

  unsigned servers() const { return static_cast<unsigned>(regions_.size()); }
  std::uint8_t* at(unsigned server) { return regions_[server].base() + shared::kHeapOffset; }

  // After one all-reduce.
  void check() {
    const unsigned all = servers();
    const auto sum_of_servers = static_cast<float>(all * (all - 1) / 2);
    for (unsigned server = 0; server < all; ++server) {
      const float* elements = this->elements(server);
      for (std::size_t i = 0; i < kElements; ++i) {
        if (elements[i] == sum_of_servers + static_cast<float>(all) * static_cast<float>(i % 7)) {
          continue;
        }
        throw std::runtime_error("server " + std::to_string(server) + " has a wrong sum");
      }
    }
  }

 private:
  static constexpr std::size_t kElements = kBytes / sizeof(float);

  float* elements(unsigned server) { return reinterpret_cast<float*>(at(server)); }

  std::deque<dataplane::SessionRegion> regions_;
};

// One thread of the plan, of all servers.
class ThreadOfAllServers {
 public:
  ThreadOfAllServers(const control::Plan& plan, unsigned thread, std::uint32_t segment_bytes,
                     Gradients& gradients)
      : reduce_(aggregation::select_kernels(512).reduce(aggregation::DataType::float32,
                                                        aggregation::Operation::sum)) {
    for (unsigned server = 0; server < gradients.servers(); ++server) {
      const control::ThreadSchedule schedule(plan, server, thread);
      const control::CollectiveShape shape{.bytes = kBytes};
      servers_.push_back({schedule, control::CollectiveLayout(schedule, shape, segment_bytes, {}),
                          gradients.at(server)});
    }
  }

  // `ahead` segments of every block take each step together.
  void allreduce(std::uint32_t ahead) {
    const Server& any = servers_.front();
    const std::uint64_t length = any.layout.end(control::Stage::aggregation, 0);
    const auto segments = static_cast<std::uint32_t>(length / any.layout.positions().blocks(0));
    const unsigned steps = any.schedule.steps();
    for (std::uint32_t first = 0; first < segments; first += ahead) {
      const std::uint32_t end = std::min(first + ahead, segments);
      for (unsigned w = 0; w < steps; ++w) {
        for (const Server& server : servers_) add(server, w, first, end);
      }
      for (unsigned w = steps; w-- > 0;) {
        for (const Server& server : servers_) copy(server, w, first, end);
      }
    }
  }

 private:
  struct Server {
    control::ThreadSchedule schedule;
    control::CollectiveLayout layout;
    std::uint8_t* buffer;
  };

  const Server& peer(const Server& server, unsigned w, unsigned r) const {
    return servers_[server.schedule.peer(w, r)];
  }

  // What the server adds in aggregation step w, of these segments of all its blocks.
  void add(const Server& server, unsigned w, std::uint32_t first, std::uint32_t end) const {
    const control::ScheduleStep& step = server.schedule.step(w);
    std::array<const void*, control::kMaxRunnableRadix> sources{};
    const std::uint32_t blocks = server.layout.positions().blocks(w);
    for (std::uint32_t q = first * blocks; q < end * blocks; ++q) {
      const control::SegmentRange range = server.layout.segment(server.schedule, w, 0, q);
      if (range.bytes == 0) continue;
      for (unsigned i = 0; i < step.radix; ++i) {
        const unsigned r = control::step_pattern::summand(step.radix, step.digit, i);
        sources[i] = peer(server, w, r).buffer + range.begin;
      }
      reduce_(server.buffer + range.begin, sources.data(), step.radix, range.bytes / sizeof(float));
    }
  }

  // What the server gets back in the mirror of step w.
  void copy(const Server& server, unsigned w, std::uint32_t first, std::uint32_t end) const {
    const control::ScheduleStep& step = server.schedule.step(w);
    const std::uint32_t blocks = server.layout.positions().blocks(w);
    for (unsigned r = 1; r < step.radix; ++r) {
      const std::uint8_t* theirs = peer(server, w, r).buffer;
      for (std::uint32_t q = first * blocks; q < end * blocks; ++q) {
        const control::SegmentRange range = server.layout.segment(server.schedule, w, r, q);
        std::memcpy(server.buffer + range.begin, theirs + range.begin, range.bytes);
      }
    }
  }

  aggregation::ReduceFunction reduce_;
  std::vector<Server> servers_;
};

void pin(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    std::fprintf(stderr, "bench_floor: cannot stay on core %u\n", core);
  }
}

// One all-reduce; returns its seconds.
double allreduce(std::vector<ThreadOfAllServers>& threads, std::uint32_t ahead) {
  const std::vector<unsigned> cores = dataplane::usable_cores();
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> workers;
    for (unsigned core = 0; core < cores.size() && core < threads.size(); ++core) {
      workers.emplace_back([&, core] {
        pin(cores[core]);
        for (std::size_t t = core; t < threads.size(); t += cores.size()) {
          threads[t].allreduce(ahead);
        }
      });
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The median of several rounds.
double measure(std::vector<ThreadOfAllServers>& threads, std::uint32_t ahead) {
  std::vector<double> seconds;
  for (unsigned i = 0; i < kRounds; ++i) seconds.push_back(allreduce(threads, ahead));
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRounds / 2];
}

int run(int argc, char** argv) {
  const bool as_json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !as_json) {
    std::fprintf(stderr, "usage: bench_floor [--json]\n");
    return 2;
  }
  control::ClusterSettings settings;
  settings.topology = control::parse_topology("bcube:3,2", "topology");
  const control::Plan plan = control::make_plan("bml", settings.topology, "plan");
  const dataplane::FabricParameters parameters = dataplane::fabric_parameters(settings);
  Gradients gradients(plan.ranks());
  std::vector<ThreadOfAllServers> threads;
  for (unsigned t = 0; t < plan.threads(); ++t) {
    threads.emplace_back(plan, t, parameters.segment_bytes, gradients);
  }
  allreduce(threads, 1);
  gradients.check();
  const double in_cache = measure(threads, 1);
  const double in_windows = measure(threads, parameters.window);
  const double by_stage = measure(threads, UINT32_MAX / 2);
  const char* format =
      as_json ? "{\"in_cache\":%.9f,\"in_windows\":%.9f,\"by_stage\":%.9f}\n"
              : "100 MB, bcube:3,2, additions and copies alone, in seconds: a segment of every "
                "piece at a time %.4g, a window %.4g, all of a step %.4g\n";
  std::printf(format, in_cache, in_windows, by_stage);
  return 0;
}

}  // namespace
}  // namespace gradcube

int main(int argc, char** argv) {
  try {
    return gradcube::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_floor: %s\n", error.what());
    return 1;
  }
}
