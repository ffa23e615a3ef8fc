// The last addition and the optimizer's step in one pass, beside the same in two: reduce() into a
// source, then the step on its result.
#ifndef GRADCUBE_TESTS_BENCH_AGGREGATION_OPTIMIZER_COMPARISON_H_
#define GRADCUBE_TESTS_BENCH_AGGREGATION_OPTIMIZER_COMPARISON_H_

#include <cstddef>
#include <string>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "tests/bench/aggregation/comparison.h"

namespace gradcube::aggregation::bench {

// float32 gradients of two sources, all arrays of `total_bytes` together. `place` is for the row.
Comparison compare_optimizer(OptimizerRule rule, std::size_t total_bytes, const std::string& place);

// Nesterov's method and AdamW, in L2 and in memory.
std::vector<Comparison> compare_optimizers();

}  // namespace gradcube::aggregation::bench

#endif  // GRADCUBE_TESTS_BENCH_AGGREGATION_OPTIMIZER_COMPARISON_H_
