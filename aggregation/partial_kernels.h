// Kernels that leave work out, for measurements alone: what an exchange takes without its
// arithmetic, and without its optimizer (PHub, section 2.3.2: progressive overhead). They
// stand where the real ones do, so that nothing else differs and nobody has to ask which run.
//
// Tables live as long as the program. Any thread may call any kernel at any time.
#ifndef GRADCUBE_AGGREGATION_PARTIAL_KERNELS_H_
#define GRADCUBE_AGGREGATION_PARTIAL_KERNELS_H_

#include "aggregation/kernels.h"
#include "aggregation/optimizer.h"

namespace gradcube::aggregation {

// Every reduce and every division leaves the result as it is.
const Kernels& idle_kernels() noexcept;

// Every step leaves weights and state as they are.
const OptimizerKernels& idle_optimizers() noexcept;

// A step adds the sources, as reduce() does, and puts the sum in the place of the weights, in the
// sources' type. `rounded`, and not `weights`, is written where that has 16 bits. For an
// instruction set that kernels_for() has.
const OptimizerKernels& adding_optimizers(InstructionSet instruction_set) noexcept;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_PARTIAL_KERNELS_H_
