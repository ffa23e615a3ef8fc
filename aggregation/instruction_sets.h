// The tables behind kernels_for() and optimizer_kernels_for(): one of each for each file
// kernels_<instruction set>.cc. Only this module may use them, because a table may hold
// instructions that this CPU does not have. Other code calls those two or select_kernels() and
// select_optimizer_kernels().
//
// Those of NEON exist only in builds for AArch64, those of AVX only in builds for x86_64.
#ifndef GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_
#define GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_

#include "aggregation/kernels.h"
#include "aggregation/optimizer.h"

namespace gradcube::aggregation {

extern const Kernels kScalarKernels;
extern const Kernels kNeonKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

extern const OptimizerKernels kScalarOptimizerKernels;
extern const OptimizerKernels kNeonOptimizerKernels;
extern const OptimizerKernels kAvx2OptimizerKernels;
extern const OptimizerKernels kAvx512OptimizerKernels;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_
