#include "comparison.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <unistd.h>

#include "aggregation/kernels.h"
#include "peer_loop.h"

namespace gradcube::aggregation::bench {
namespace {

constexpr std::size_t kPage = 4096;

template <typename Call>
double seconds_of(std::size_t repeats, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repeats; ++i) call();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return time.count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Memory make_memory(std::size_t bytes) {
  const std::size_t whole_pages = (bytes + kPage - 1) / kPage * kPage;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, whole_pages)));
  if (!memory) throw std::bad_alloc();
  std::memset(memory.get(), 0, whole_pages);
  return memory;
}

std::size_t bytes_in_memory() {
  constexpr std::size_t kLeast = std::size_t{256} << 20;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return last_level <= 0 ? kMost
                         : std::clamp(3 * static_cast<std::size_t>(last_level), kLeast, kMost);
}

Comparison compare_float32_sum(std::size_t source_count, std::size_t total_bytes,
                               const std::string& place) {
  // Whole blocks of the peer's loop. Zeros stay zeros, so in-place sums never overflow.
  const std::size_t count = total_bytes / source_count / sizeof(float) / 64 * 64;
  const std::size_t array_bytes = count * sizeof(float);
  std::vector<Memory> arrays;
  std::vector<const void*> sources;
  for (std::size_t s = 0; s < source_count; ++s) {
    arrays.push_back(make_memory(array_bytes));
    sources.push_back(arrays.back().get());
  }
  void* const result = arrays[0].get();
  auto* const a = static_cast<float*>(result);
  const auto* const b = static_cast<const float*>(sources[1]);
  const auto* const c = static_cast<const float*>(sources.back());

  const PeerLoops& peer = peer_loops();
  const FoldFunction fold =
      select_kernels(std::numeric_limits<unsigned>::max()).fold(DataType::float32, Operation::sum);
  const auto run_kernel = [&] { fold(result, sources.data(), source_count, count); };
  const auto run_peer = [&] {
    if (source_count == 2) {
      peer.two(a, a, b, count);
    } else {
      peer.three(a, a, b, c, count);
    }
  };

  constexpr std::size_t kBytesPerSample = std::size_t{64} << 20;
  const std::size_t repeats = std::max<std::size_t>(1, kBytesPerSample / total_bytes);
  const std::size_t samples = total_bytes > kBytesPerSample ? 15 : 201;
  std::vector<double> kernel_seconds;
  std::vector<double> peer_seconds;
  run_kernel();
  run_peer();
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const bool kernel_first = sample % 2 == 0;
    if (kernel_first) kernel_seconds.push_back(seconds_of(repeats, run_kernel));
    peer_seconds.push_back(seconds_of(repeats, run_peer));
    if (!kernel_first) kernel_seconds.push_back(seconds_of(repeats, run_kernel));
  }
  const double kernel = median(kernel_seconds);
  const double other = median(peer_seconds);
  const double gigabytes = static_cast<double>((source_count + 1) * array_bytes * repeats) / 1e9;
  return {"kernel float32 sum, " + std::to_string(source_count) + " sources, " + place,
          gigabytes / kernel, gigabytes / other, peer.name, other / kernel};
}

std::vector<Comparison> compare_all() {
  return {compare_float32_sum(2, kBytesInL2, "in L2"), compare_float32_sum(3, kBytesInL2, "in L2"),
          compare_float32_sum(2, bytes_in_memory(), "in memory"),
          compare_float32_sum(3, bytes_in_memory(), "in memory")};
}

}  // namespace gradcube::aggregation::bench
