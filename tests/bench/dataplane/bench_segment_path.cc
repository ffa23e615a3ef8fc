// The segment path on one core: two servers of an embedded star:2 all-reduce float32 gradients in
// segments of 8 KiB over an unlimited switch, and one thread turns both engines and the switch by
// hand. Each segment is cut from the sender's buffer, sealed with a CRC32C or a MAC, sent through
// the switch, received, checked, and then added (aggregation) or written (broadcast) at the
// receiver, half of the segments each.
//
// A figure is the payload that was sent, over the time; medians of several rounds. "In cache": both
// trainers' buffers together are 1 MiB. "In memory": 128 MiB, which leave every cache but the very
// largest; they lie in huge pages where the system gives some, as a trainer's do. The stage view
// says what the bare work on a segment costs by itself, over the same bytes; what is left is
// engines, rings, switch and everything between.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/eal.h"
#include "protocol/crc.h"
#include "protocol/kernels/mac_kernels.h"
#include "tests/bench/dataplane/two_servers.h"

namespace gradcube {
namespace {

using aggregation::DataType;
using aggregation::Operation;

constexpr std::uint32_t kSegment = 8192;
constexpr unsigned kRounds = 7;
constexpr std::uint64_t kBytesPerRound = 1'000'000'000;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Gigabytes per second: the median of several rounds of `work`, which handles `bytes` each time.
double rate(std::uint64_t bytes, const std::function<void()>& work) {
  work();
  std::vector<double> rounds;
  for (unsigned i = 0; i < kRounds; ++i) rounds.push_back(seconds(work));
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return static_cast<double>(bytes) / rounds[kRounds / 2] * 1e-9;
}

// What the bare work on segments costs, over the buffers of the pair.
struct Stages {
  double read = 0;  // GB/s
  double crc = 0;
  double mac = 0;
  double add = 0;
  double copy = 0;
};

std::uint64_t sum_of(const std::uint8_t* bytes, std::uint64_t length) {
  std::array<std::uint64_t, 16> sums{};
  for (std::uint64_t i = 0; i < length; i += sizeof sums) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      std::uint64_t word;
      std::memcpy(&word, bytes + i + lane * sizeof word, sizeof word);
      sums[lane] += word;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  return sum;
}

Stages measure_stages(TwoServers& pair, std::uint64_t bytes) {
  const std::uint64_t passes = std::max<std::uint64_t>(1, kBytesPerRound / bytes);
  volatile std::uint64_t sink = 0;
  const auto over_segments = [&](auto&& work) {
    return rate(passes * bytes, [&] {
      for (std::uint64_t pass = 0; pass < passes; ++pass) {
        for (std::uint64_t at = 0; at < bytes; at += kSegment) {
          work(pair.buffer(0) + at, pair.buffer(1) + at);
        }
      }
    });
  };
  const aggregation::ReduceFunction reduce =
      aggregation::select_kernels(512).reduce(DataType::float32, Operation::sum);
  Stages stages;
  stages.read = over_segments(
      [&](std::uint8_t* ours, std::uint8_t*) { sink = sink + sum_of(ours, kSegment); });
  stages.crc = over_segments([&](std::uint8_t* ours, std::uint8_t*) {
    sink = sink + protocol::extend_crc(0, {ours, kSegment});
  });
  const protocol::MacKernel mac({1}, {2});
  stages.mac = over_segments([&](std::uint8_t* ours, std::uint8_t*) {
    sink = sink + mac({ours, 64}, {ours + 64, kSegment - 64}, {});
  });
  stages.add = over_segments([&](std::uint8_t* ours, std::uint8_t* theirs) {
    const std::array<const void*, 2> sources{ours, theirs};
    reduce(ours, sources.data(), sources.size(), kSegment / sizeof(float));
  });
  stages.copy = over_segments(
      [&](std::uint8_t* ours, std::uint8_t* theirs) { std::memcpy(ours, theirs, kSegment); });
  return stages;
}

double measure_path(TwoServers& pair, bool checksums) {
  pair.set_checksums(checksums);
  const std::uint64_t times = std::max<std::uint64_t>(1, kBytesPerRound / pair.payload());
  return rate(times * pair.payload(), [&] {
    for (std::uint64_t i = 0; i < times; ++i) {
      pair.submit();
      while (pair.is_busy()) pair.iterate();
    }
  });
}

// Nanoseconds that a segment takes at this rate.
double per_segment(double gigabytes_per_second) { return kSegment / gigabytes_per_second; }

// with: a CRC32C, a MAC; without either.
void print_stages(const std::string& place, const Stages& stages, double with, double with_mac,
                  double without) {
  const double use = (per_segment(stages.add) + per_segment(stages.copy)) / 2;
  const double crc = 2 * per_segment(stages.crc);
  std::printf("  a segment %s, in ns: %.0f with CRC32C, %.0f with MAC, %.0f without\n",
              place.c_str(), per_segment(with), per_segment(with_mac), per_segment(without));
  std::printf("    CRC32C twice           %6.0f  (%.1f GB/s)\n", crc, stages.crc);
  std::printf("    MAC twice              %6.0f  (%.1f GB/s)\n", 2 * per_segment(stages.mac),
              stages.mac);
  std::printf("    added or written       %6.0f  (add %.1f, copy %.1f GB/s)\n", use, stages.add,
              stages.copy);
  std::printf("    engines, rings, switch %6.0f  with CRC32C, %.0f without\n",
              per_segment(with) - crc - use, per_segment(without) - use);
}

void measure(const std::string& place, std::uint64_t bytes, bool as_json,
             nlohmann::ordered_json& rows) {
  dataplane::TscClock clock;
  double with_mac = 0;
  {
    TwoServers authenticated(clock, kSegment, bytes, true);
    with_mac = measure_path(authenticated, true);
  }
  TwoServers pair(clock, kSegment, bytes, false);
  const double with = measure_path(pair, true);
  const double without = measure_path(pair, false);
  const Stages stages = measure_stages(pair, bytes);
  const auto add_row = [&](const char* how, double value, double peer, const char* peer_name) {
    const std::string figure = std::string("segment path, 8 KiB, ") + how + ", one core" + place;
    rows.push_back({{"figure", figure},
                    {"value", value},
                    {"unit", "GB/s"},
                    {"peer", peer},
                    {"peer_name", peer_name},
                    {"ratio", value / peer}});
    if (!as_json) {
      std::printf("%-62s %6.2f GB/s, %.2f of %.2f: %s\n", figure.c_str(), value, value / peer, peer,
                  peer_name);
    }
  };
  constexpr const char* kRead = "copy-free memory read of the same bytes";
  add_row("with CRC32C", with, stages.read, kRead);
  add_row("without CRC32C", without, stages.read, kRead);
  add_row("with MAC", with_mac, with, "the same with CRC32C");
  if (!as_json)
    print_stages(place.empty() ? "in cache" : "in memory", stages, with, with_mac, without);
}

int run(int argc, char** argv) {
  const bool as_json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !as_json) {
    std::fprintf(stderr, "usage: bench_segment_path [--json]\n");
    return 2;
  }
  dataplane::EalOptions options;
  options.cores = {dataplane::usable_cores().front()};
  const dataplane::Eal eal(options);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  measure("", 512 * 1024, as_json, rows);
  measure(", in memory", 64 * 1024 * 1024, as_json, rows);
  if (as_json) std::printf("%s\n", nlohmann::ordered_json{{"rows", rows}}.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace gradcube

int main(int argc, char** argv) {
  try {
    return gradcube::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_segment_path: %s\n", error.what());
    return 1;
  }
}
