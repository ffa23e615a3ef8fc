// The tables behind kernels_for(), one per file kernels_<instruction set>.cc. For the module
// itself: a table may hold instructions this CPU lacks, so others ask kernels_for() or
// select_kernels().
//
// The x86 tables exist in builds for x86_64 alone.
#ifndef GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_
#define GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_

#include "aggregation/kernels.h"

namespace gradcube::aggregation {

extern const Kernels kScalarKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_INSTRUCTION_SETS_H_
