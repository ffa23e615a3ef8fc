// AVX-512, 64 bytes per vector, with non-temporal stores.
#include <immintrin.h>

#include "aggregation/optimizer_loop.h"
#include "tests/bench/hub/streaming_optimizer.h"

namespace gradcube::bench {
namespace {

struct StreamingFloat32 {
  using Vector = __m512;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) {
    return _mm512_loadu_ps(reinterpret_cast<const float*>(from));
  }
  static void store(std::byte* to, Vector value) {
    _mm512_stream_ps(reinterpret_cast<float*>(to), value);
  }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_ps(acc, x); }
  static Vector broadcast(float value) { return _mm512_set1_ps(value); }
  static Vector scale(Vector value, Vector by) { return _mm512_mul_ps(value, by); }
  static Vector divide(Vector value, Vector by) { return _mm512_div_ps(value, by); }
  static Vector fused(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector square_root(Vector value) { return _mm512_sqrt_ps(value); }
};

}  // namespace

void stream_nesterov_avx512(const aggregation::OptimizerArrays& arrays, const void* const* sources,
                            std::size_t source_count, std::size_t count,
                            const aggregation::OptimizerStep& step) noexcept {
  aggregation::optimize<StreamingFloat32, StreamingFloat32, aggregation::OptimizerRule::nesterov,
                        false, false>(arrays, sources, source_count, count, step);
  _mm_sfence();
}

}  // namespace gradcube::bench
