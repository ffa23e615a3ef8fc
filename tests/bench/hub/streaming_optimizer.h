// Nesterov's step with stores that bypass the caches, to compare with the kernels' ordinary ones
// (PHub, Table 4). The loop and the bits are those of aggregation/optimizer.h; only the stores of
// weights and momentum are non-temporal, and a fence ends each call.
#ifndef GRADCUBE_TESTS_BENCH_HUB_STREAMING_OPTIMIZER_H_
#define GRADCUBE_TESTS_BENCH_HUB_STREAMING_OPTIMIZER_H_

#include <cstddef>

#include "aggregation/optimizer.h"

namespace gradcube::bench {

// For float32 without division, clipping and weight decay. Weights and momentum begin at multiples
// of 64 bytes. The same vectors as the widest kernels of this machine; nullptr without AVX2.
aggregation::OptimizeFunction streaming_nesterov() noexcept;

// Each for CPUs with its instructions.
void stream_nesterov_avx2(const aggregation::OptimizerArrays& arrays, const void* const* sources,
                          std::size_t source_count, std::size_t count,
                          const aggregation::OptimizerStep& step) noexcept;
void stream_nesterov_avx512(const aggregation::OptimizerArrays& arrays, const void* const* sources,
                            std::size_t source_count, std::size_t count,
                            const aggregation::OptimizerStep& step) noexcept;

}  // namespace gradcube::bench

#endif  // GRADCUBE_TESTS_BENCH_HUB_STREAMING_OPTIMIZER_H_
