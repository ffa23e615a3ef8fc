#include "tests/bench/aggregation/comparison.h"

#include <algorithm>
#include <limits>
#include <unistd.h>

#include "aggregation/kernels.h"
#include "tests/bench/aggregation/peer_loop.h"

namespace gradcube::aggregation::bench {

std::size_t bytes_in_memory() {
  constexpr std::size_t kLeast = std::size_t{256} << 20;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return last_level <= 0 ? kMost
                         : std::clamp(3 * static_cast<std::size_t>(last_level), kLeast, kMost);
}

Comparison compare_float32_sum(std::size_t source_count, std::size_t total_bytes,
                               const std::string& place) {
  // A sample covers one window of the arrays, in whole blocks of the peer's loop. Windows follow
  // one another through the arrays, so that of arrays beyond the caches none is there when it is
  // due.
  constexpr std::size_t kMostWindowBytes = std::size_t{16} << 20;
  constexpr std::size_t kSamples = 400;
  const std::size_t windows = (total_bytes + kMostWindowBytes - 1) / kMostWindowBytes;
  const std::size_t count = total_bytes / windows / source_count / sizeof(float) / 64 * 64;
  const std::size_t repeats = windows > 1 ? 1 : kMostWindowBytes / total_bytes;

  // Zeros stay zeros, so sums in place never overflow.
  std::vector<Memory> arrays;
  for (std::size_t s = 0; s < source_count; ++s) {
    arrays.push_back(make_memory(windows * count * sizeof(float)));
  }
  const PeerLoops& peer = peer_loops();
  const ReduceFunction reduce = select_kernels(std::numeric_limits<unsigned>::max())
                                    .reduce(DataType::float32, Operation::sum);
  std::vector<double> kernel_seconds;
  std::vector<double> peer_seconds;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const void* sources[3] = {};
    float* window[3] = {};
    for (std::size_t s = 0; s < source_count; ++s) {
      window[s] = reinterpret_cast<float*>(arrays[s].get()) + sample % windows * count;
      sources[s] = window[s];
    }
    // The sides take turns, and each takes every window.
    const bool kernels_turn = (sample % windows + sample / windows) % 2 == 0;
    const double begin = thread_seconds();
    for (std::size_t i = 0; i < repeats; ++i) {
      if (kernels_turn) {
        reduce(window[0], sources, source_count, count);
      } else if (source_count == 2) {
        peer.two(window[0], window[0], window[1], count);
      } else {
        peer.three(window[0], window[0], window[1], window[2], count);
      }
    }
    (kernels_turn ? kernel_seconds : peer_seconds).push_back(thread_seconds() - begin);
  }
  const double kernel = median(kernel_seconds);
  const double other = median(peer_seconds);
  const double gigabytes =
      static_cast<double>((source_count + 1) * count * sizeof(float) * repeats) / 1e9;
  return {"kernel float32 sum, " + std::to_string(source_count) + " sources, " + place,
          gigabytes / kernel, gigabytes / other, peer.name, other / kernel};
}

std::vector<Comparison> compare_all() {
  return {compare_float32_sum(2, kBytesInL2, "in L2"), compare_float32_sum(3, kBytesInL2, "in L2"),
          compare_float32_sum(2, bytes_in_memory(), "in memory"),
          compare_float32_sum(3, bytes_in_memory(), "in memory")};
}

}  // namespace gradcube::aggregation::bench
