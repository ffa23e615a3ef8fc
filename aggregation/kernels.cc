#include "aggregation/kernels.h"

#include <iterator>

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

struct InstructionSetFacts {
  std::string_view name;
  unsigned vector_bits;
};
constexpr InstructionSetFacts kFacts[] = {  // in the order of the enumeration
    {"scalar", 0},
    {"neon", 128},
    {"avx2", 256},
    {"avx512", 512}};

}  // namespace

std::string_view instruction_set_name(InstructionSet instruction_set) noexcept {
  const auto index = static_cast<std::size_t>(instruction_set);
  return index < std::size(kFacts) ? kFacts[index].name : "?";
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
#elif defined(__aarch64__)
    case InstructionSet::neon:
      return &kNeonKernels;
#endif
    default:
      return nullptr;
  }
}

const Kernels& select_kernels(unsigned max_simd_bits) noexcept {
  const Kernels* widest = &kScalarKernels;
  for (const InstructionSet each : kInstructionSets) {
    if (kFacts[static_cast<std::size_t>(each)].vector_bits > max_simd_bits) break;
    if (const Kernels* kernels = kernels_for(each)) widest = kernels;
  }
  return *widest;
}

}  // namespace gradcube::aggregation
