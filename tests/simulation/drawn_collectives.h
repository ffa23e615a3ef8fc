// What the trainers of a scenario submit, drawn at random.
#ifndef GRADCUBE_TESTS_SIMULATION_DRAWN_COLLECTIVES_H_
#define GRADCUBE_TESTS_SIMULATION_DRAWN_COLLECTIVES_H_

#include <cstdint>

#include "dataplane/fabric/emulated/random.h"
#include "tests/simulation/inputs.h"
#include "tests/simulation/scenario.h"

namespace gradcube::simulation {

inline bool one_in(dataplane::SeededRandom& random, std::uint64_t chances) {
  return random.below(chances) == 0;
}

// The collectives, and when they are submitted: of a scenario with a network and jobs.
void draw_work(dataplane::SeededRandom& random, Scenario& scenario);

// Of no more bytes than before, or of one element: there is room for that.
void make_overflow(Collective& collective);

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_DRAWN_COLLECTIVES_H_
