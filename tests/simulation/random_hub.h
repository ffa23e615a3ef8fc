// A random run of a job's hub, drawn from one seed: the cluster, its faults, the keys, and what
// befalls a trainer or a node while all trainers push. play_hub() runs it and returns every
// violation of these invariants:
//
// - a push that ends well leaves at its trainer's server the weights of the step that it says:
// those
//   after so many steps with the mean of all trainers' gradients, to the bit;
// - one that accumulates ends with the sum of the squares of all that is accumulated: the same bits
//   at all;
// - they stay there until the trainer pushes the key again: whether its job ends or is reset, or
// its
//   daemon dies, and as long as it stays;
// - every push ends, within bounded virtual time; and where one has failed, the hub says how it has
//   ended;
// - when all trainers have left, every packet is back in its pool, and the next job has its hub.
//
// Gradients are such that no sum and no step is rounded, so the order of additions does not matter.
// How long a hub is being made depends on the host, so a replay may differ in its packets.
#ifndef GRADCUBE_TESTS_SIMULATION_RANDOM_HUB_H_
#define GRADCUBE_TESTS_SIMULATION_RANDOM_HUB_H_

#include <cstdint>

#include "tests/simulation/scenario.h"

namespace gradcube::simulation {

Outcome play_hub(std::uint64_t seed);

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_RANDOM_HUB_H_
