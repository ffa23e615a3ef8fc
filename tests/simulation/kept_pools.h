// The packet pools of simulated clusters outlive them. To make and end them took a fifth of the
// time of a random cluster: DPDK writes into each packet at the begin, zeros all memory at the end.
// So a program with the simulation has DPDK's functions that make and end pools replaced: one that
// is whole from the start, and ends with all packets in it, is kept, and who asks for one of the
// same name and form gets it. What was in its packets stays there, as it does within a run. So a
// packet that one run gives back twice may harm a later one.
//
// Single-threaded, like the simulation.
#ifndef GRADCUBE_TESTS_SIMULATION_KEPT_POOLS_H_
#define GRADCUBE_TESTS_SIMULATION_KEPT_POOLS_H_

#include <rte_mempool.h>
#include <string>

namespace gradcube::simulation {

// The pool that was made under this name and has not ended; null if there is none.
// rte_mempool_lookup() knows other names.
const rte_mempool* pool_in_use(const std::string& name);

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_KEPT_POOLS_H_
