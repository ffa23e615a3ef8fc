// The tables behind kernels_for(): one for each file kernels_<instruction set>.cc. Only this module
// may use them, because a table may hold instructions that this CPU does not have. Other code calls
// kernels_for() or select_kernels().
//
// Those of NEON exist only in builds for AArch64, those of AVX only in builds for x86_64.
#ifndef GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_
#define GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_

#include "aggregation/kernels.h"

namespace gradcube::aggregation {

extern const Kernels kScalarKernels;
extern const Kernels kNeonKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_
