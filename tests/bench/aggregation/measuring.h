// What benches of kernels need: memory, the time of a thread, and medians.
#ifndef GRADCUBE_TESTS_BENCH_AGGREGATION_MEASURING_H_
#define GRADCUBE_TESTS_BENCH_AGGREGATION_MEASURING_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace gradcube::aggregation::bench {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

// `bytes` of touched memory that begin at a page; throws std::bad_alloc.
Memory make_memory(std::size_t bytes);

// The time this thread ran: another process on this core must not count against either side.
double thread_seconds();

double median(std::vector<double> values);

}  // namespace gradcube::aggregation::bench

#endif  // GRADCUBE_TESTS_BENCH_AGGREGATION_MEASURING_H_
