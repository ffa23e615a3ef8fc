#include "aggregation/optimizer.h"

#include "aggregation/instruction_sets.h"

namespace gradcube::aggregation {

const OptimizerKernels* optimizer_kernels_for(InstructionSet instruction_set) noexcept {
  if (kernels_for(instruction_set) == nullptr) return nullptr;
  switch (instruction_set) {
#if defined(__x86_64__)
    case InstructionSet::avx2:
      return &kAvx2OptimizerKernels;
    case InstructionSet::avx512:
      return &kAvx512OptimizerKernels;
#elif defined(__aarch64__)
    case InstructionSet::neon:
      return &kNeonOptimizerKernels;
#endif
    default:
      return &kScalarOptimizerKernels;
  }
}

const OptimizerKernels& select_optimizer_kernels(unsigned max_simd_bits) noexcept {
  return *optimizer_kernels_for(select_kernels(max_simd_bits).instruction_set);
}

}  // namespace gradcube::aggregation
