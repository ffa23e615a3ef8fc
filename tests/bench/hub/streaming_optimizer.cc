#include "tests/bench/hub/streaming_optimizer.h"

#include <limits>

#include "aggregation/kernels.h"

namespace gradcube::bench {

aggregation::OptimizeFunction streaming_nesterov() noexcept {
#if defined(__x86_64__)
  switch (aggregation::select_kernels(std::numeric_limits<unsigned>::max()).instruction_set) {
    case aggregation::InstructionSet::avx2:
      return stream_nesterov_avx2;
    case aggregation::InstructionSet::avx512:
      return stream_nesterov_avx512;
    default:
      return nullptr;
  }
#else
  return nullptr;
#endif
}

}  // namespace gradcube::bench
