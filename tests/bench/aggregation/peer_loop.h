// What the kernels are measured against: the plain loop that one would write by hand for float32
// sums, load, add, store, four vectors per iteration, in the widest vectors this CPU has.
#ifndef GRADCUBE_TESTS_BENCH_AGGREGATION_PEER_LOOP_H_
#define GRADCUBE_TESTS_BENCH_AGGREGATION_PEER_LOOP_H_

#include <cstddef>

namespace gradcube::aggregation::bench {

// result[i] = a[i] + b[i], and result[i] = (a[i] + b[i]) + c[i]; `count` is a multiple of 64.
struct PeerLoops {
  const char* name;
  void (*two)(float* result, const float* a, const float* b, std::size_t count);
  void (*three)(float* result, const float* a, const float* b, const float* c, std::size_t count);
};

const PeerLoops& peer_loops();

}  // namespace gradcube::aggregation::bench

#endif  // GRADCUBE_TESTS_BENCH_AGGREGATION_PEER_LOOP_H_
