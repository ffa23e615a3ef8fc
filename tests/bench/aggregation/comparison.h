// The kernels beside their peer, measured alternately in one run so that both meet the same
// machine.
#ifndef GRADCUBE_TESTS_BENCH_AGGREGATION_COMPARISON_H_
#define GRADCUBE_TESTS_BENCH_AGGREGATION_COMPARISON_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/aggregation/measuring.h"

namespace gradcube::aggregation::bench {

// A size that no cache holds: three times the last-level cache, within [256 MiB, 1 GiB].
std::size_t bytes_in_memory();
inline constexpr std::size_t kBytesInL2 = std::size_t{256} << 10;

struct Comparison {
  std::string figure;
  double gigabytes_per_second;  // read and written by the kernel: sources + 1 arrays
  double peer_gigabytes_per_second;
  std::string peer_name;
  double ratio;  // the peer's median time / the kernel's
};

// float32 sums of `source_count` (2 or 3) arrays, `total_bytes` together, into the first array.
Comparison compare_float32_sum(std::size_t source_count, std::size_t total_bytes,
                               const std::string& place);

// Two and three sources, in L2 and in memory.
std::vector<Comparison> compare_all();

}  // namespace gradcube::aggregation::bench

#endif  // GRADCUBE_TESTS_BENCH_AGGREGATION_COMPARISON_H_
