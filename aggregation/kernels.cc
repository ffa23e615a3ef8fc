#include "aggregation/kernels.h"

#include "aggregation/instruction_sets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gradcube::aggregation {
namespace {

#if defined(__x86_64__)

// Older compilers do not have __builtin_cpu_supports("f16c"). F16C works on the registers of AVX2,
// so an operating system that supports AVX2 saves them.
bool cpu_has_f16c() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool cpu_has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         cpu_has_f16c();
}

bool cpu_has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

#endif

}  // namespace

std::string_view instruction_set_name(InstructionSet instruction_set) noexcept {
  switch (instruction_set) {
    case InstructionSet::scalar:
      return "scalar";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "?";
}

const Kernels* kernels_for(InstructionSet instruction_set) noexcept {
  switch (instruction_set) {
    case InstructionSet::scalar:
      return &kScalarKernels;
#if defined(__x86_64__)
    case InstructionSet::avx2:
      return cpu_has_avx2() ? &kAvx2Kernels : nullptr;
    case InstructionSet::avx512:
      return cpu_has_avx512() ? &kAvx512Kernels : nullptr;
#endif
    default:
      return nullptr;
  }
}

const Kernels& select_kernels(unsigned max_simd_bits) noexcept {
  if (max_simd_bits >= 512) {
    if (const Kernels* kernels = kernels_for(InstructionSet::avx512)) return *kernels;
  }
  if (max_simd_bits >= 256) {
    if (const Kernels* kernels = kernels_for(InstructionSet::avx2)) return *kernels;
  }
  return kScalarKernels;
}

}  // namespace gradcube::aggregation
