// Makes one trainer's collective another one than that of the others.
#ifndef GRADCUBE_TESTS_SIMULATION_DISAGREE_H_
#define GRADCUBE_TESTS_SIMULATION_DISAGREE_H_

#include <cstdint>

#include "dataplane/fabric/emulated/random.h"
#include "tests/simulation/inputs.h"

namespace gradcube::simulation {

// Changes what trainers compare. The buffer grows by a little at most. ranks: trainers of the job.
void disagree(Collective& order, std::uint32_t ranks, dataplane::SeededRandom& random);

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_DISAGREE_H_
