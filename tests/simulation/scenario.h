// A random run of a whole cluster, drawn from one seed: what is built, what goes wrong, who submits
// what and when. play() runs it and returns everything that was not as it has to be.
//
// What has to be, whatever happens: every collective that was submitted ends at every server that
// stays, within bounded virtual time, in order and exactly once, with the right bits or with the
// error that fits what went wrong; and when all have left, every packet is back in its pool.
#ifndef GRADCUBE_TESTS_SIMULATION_SCENARIO_H_
#define GRADCUBE_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/inputs.h"
#include "tests/simulation/simulated_cluster.h"

namespace gradcube::simulation {

enum class Misfortune {
  none,
  disagreement,    // one trainer submits something else than the others
  orderly_leave,   // one trainer leaves
  death,           // one trainer is gone in the middle of something
  scribbled_ring,  // one trainer writes nonsense into its ring
  overflow,        // an average of integers overflows
};

struct Scenario {
  SimulationSettings simulation;
  unsigned jobs = 1;
  std::vector<Collective> collectives;       // of every job; salts are told apart by the job
  unsigned most_in_flight = 1;               // per trainer
  std::int64_t pause = 0;                    // the longest between two submissions of a trainer
  Misfortune misfortune = Misfortune::none;  // of job 0
  bcube::ServerId victim = 0;
  std::size_t when = 0;    // the collective at which it happens
  bool guests = false;     // another job comes and goes all the while
  std::int64_t limit = 0;  // virtual time within which all must have ended
};

Scenario draw_scenario(std::uint64_t seed);
std::string describe(const Scenario& scenario);

struct Outcome {
  std::vector<std::string> complaints;
  std::uint64_t trace = 0;
  std::int64_t virtual_time = 0;
  unsigned succeeded = 0;  // collectives, over all servers
  unsigned failed = 0;
};
Outcome play(const Scenario& scenario);

}  // namespace gradcube::simulation

#endif
