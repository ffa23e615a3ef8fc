#include "tests/bench/aggregation/peer_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gradcube::aggregation::bench {
namespace {

void plain_two(float* result, const float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) result[i] = a[i] + b[i];
}

void plain_three(float* result, const float* a, const float* b, const float* c, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) result[i] = (a[i] + b[i]) + c[i];
}

constexpr PeerLoops kPlain = {"load-add-store loop", plain_two, plain_three};

#if defined(__x86_64__)

__attribute__((target("avx2"))) void avx2_two(float* result, const float* a, const float* b,
                                              std::size_t count) {
  for (std::size_t i = 0; i < count; i += 32) {
    const __m256 a0 = _mm256_loadu_ps(a + i);
    const __m256 a1 = _mm256_loadu_ps(a + i + 8);
    const __m256 a2 = _mm256_loadu_ps(a + i + 16);
    const __m256 a3 = _mm256_loadu_ps(a + i + 24);
    _mm256_storeu_ps(result + i, _mm256_add_ps(a0, _mm256_loadu_ps(b + i)));
    _mm256_storeu_ps(result + i + 8, _mm256_add_ps(a1, _mm256_loadu_ps(b + i + 8)));
    _mm256_storeu_ps(result + i + 16, _mm256_add_ps(a2, _mm256_loadu_ps(b + i + 16)));
    _mm256_storeu_ps(result + i + 24, _mm256_add_ps(a3, _mm256_loadu_ps(b + i + 24)));
  }
}

__attribute__((target("avx2"))) void avx2_three(float* result, const float* a, const float* b,
                                                const float* c, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 32) {
    const __m256 s0 = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
    const __m256 s1 = _mm256_add_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8));
    const __m256 s2 = _mm256_add_ps(_mm256_loadu_ps(a + i + 16), _mm256_loadu_ps(b + i + 16));
    const __m256 s3 = _mm256_add_ps(_mm256_loadu_ps(a + i + 24), _mm256_loadu_ps(b + i + 24));
    _mm256_storeu_ps(result + i, _mm256_add_ps(s0, _mm256_loadu_ps(c + i)));
    _mm256_storeu_ps(result + i + 8, _mm256_add_ps(s1, _mm256_loadu_ps(c + i + 8)));
    _mm256_storeu_ps(result + i + 16, _mm256_add_ps(s2, _mm256_loadu_ps(c + i + 16)));
    _mm256_storeu_ps(result + i + 24, _mm256_add_ps(s3, _mm256_loadu_ps(c + i + 24)));
  }
}

__attribute__((target("avx512f"))) void avx512_two(float* result, const float* a, const float* b,
                                                   std::size_t count) {
  for (std::size_t i = 0; i < count; i += 64) {
    const __m512 a0 = _mm512_loadu_ps(a + i);
    const __m512 a1 = _mm512_loadu_ps(a + i + 16);
    const __m512 a2 = _mm512_loadu_ps(a + i + 32);
    const __m512 a3 = _mm512_loadu_ps(a + i + 48);
    _mm512_storeu_ps(result + i, _mm512_add_ps(a0, _mm512_loadu_ps(b + i)));
    _mm512_storeu_ps(result + i + 16, _mm512_add_ps(a1, _mm512_loadu_ps(b + i + 16)));
    _mm512_storeu_ps(result + i + 32, _mm512_add_ps(a2, _mm512_loadu_ps(b + i + 32)));
    _mm512_storeu_ps(result + i + 48, _mm512_add_ps(a3, _mm512_loadu_ps(b + i + 48)));
  }
}

__attribute__((target("avx512f"))) void avx512_three(float* result, const float* a, const float* b,
                                                     const float* c, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 64) {
    const __m512 s0 = _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
    const __m512 s1 = _mm512_add_ps(_mm512_loadu_ps(a + i + 16), _mm512_loadu_ps(b + i + 16));
    const __m512 s2 = _mm512_add_ps(_mm512_loadu_ps(a + i + 32), _mm512_loadu_ps(b + i + 32));
    const __m512 s3 = _mm512_add_ps(_mm512_loadu_ps(a + i + 48), _mm512_loadu_ps(b + i + 48));
    _mm512_storeu_ps(result + i, _mm512_add_ps(s0, _mm512_loadu_ps(c + i)));
    _mm512_storeu_ps(result + i + 16, _mm512_add_ps(s1, _mm512_loadu_ps(c + i + 16)));
    _mm512_storeu_ps(result + i + 32, _mm512_add_ps(s2, _mm512_loadu_ps(c + i + 32)));
    _mm512_storeu_ps(result + i + 48, _mm512_add_ps(s3, _mm512_loadu_ps(c + i + 48)));
  }
}

constexpr PeerLoops kAvx2 = {"hand-unrolled load-add-store loop, AVX2", avx2_two, avx2_three};
constexpr PeerLoops kAvx512 = {"hand-unrolled load-add-store loop, AVX-512", avx512_two,
                               avx512_three};

#endif

}  // namespace

const PeerLoops& peer_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kAvx512;
  if (__builtin_cpu_supports("avx2")) return kAvx2;
#endif
  return kPlain;
}

}  // namespace gradcube::aggregation::bench
