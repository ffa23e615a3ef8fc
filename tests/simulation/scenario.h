// A random run of a whole cluster, drawn from one seed: the cluster, its faults, and which trainer
// submits what and when. play() runs it and returns every violation of these invariants:
//
// - each submitted collective ends at each server that stays, in the order of its lane, exactly
//   once, within bounded virtual time;
// - it ends with the right bits, or with the error that fits the fault;
// - it ends alike at all servers, unless a server fails or what is shared cannot be done in time;
//   after a server's death the others learn the same number of the last collective that did;
// - the messages that trainers exchange beside them arrive as mail_streams.h says;
// - a collective's buffer is the trainer's again at its end: each trainer overwrites it then;
// - when all trainers have left, every packet is back in its pool.
#ifndef GRADCUBE_TESTS_SIMULATION_SCENARIO_H_
#define GRADCUBE_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/jobs/job_options.h"
#include "tests/simulation/inputs.h"
#include "tests/simulation/simulated_cluster.h"

namespace gradcube::simulation {

enum class Misfortune {
  none,
  disagreement,    // one trainer submits another collective than the others
  orderly_leave,   // one trainer leaves
  death,           // one trainer dies with collectives in flight
  scribbled_ring,  // one trainer corrupts its ring
  overflow,        // an average of integers overflows
  node_death,      // a server's node is killed
  node_restart,    // the same, and it starts anew after a while
  node_pause,      // a server's node stands still for a while
  mute,            // nothing that a server sends arrives, for a while or for ever
  cut_off,         // nor does anything that is sent to it
};
inline constexpr unsigned kMisfortunes = 11;
constexpr bool befalls_a_node(Misfortune misfortune) {
  return misfortune >= Misfortune::node_death;
}

struct ScenarioJob {
  control::JobOptions options;       // with all members
  std::vector<std::uint32_t> ranks;  // of servers, wished, by member; empty: nobody wishes
};

// A link that is down for a while, or drops what its server sends and is long.
struct Outage {
  std::uint64_t link = 0;  // of all, modulo how many there are
  std::int64_t from = 0;   // virtual time
  std::int64_t until = 0;
  std::uint32_t mtu = 0;  // bytes of the longest IP packet that passes; 0: none passes
};

struct Scenario {
  SimulationSettings simulation;
  std::vector<ScenarioJob> jobs;
  std::vector<Collective> collectives;       // of every job: see collective()
  unsigned most_in_flight = 1;               // per trainer
  std::int64_t pause = 0;                    // the longest between two submissions of a trainer
  Misfortune misfortune = Misfortune::none;  // of job 0
  unsigned victim = 0;                       // a rank
  std::optional<unsigned> late_rank;         // of every job: it submits nothing before `late_until`
  std::int64_t late_until = 0;
  std::size_t when = 0;    // the collective at which it happens
  std::int64_t lasts = 0;  // of what befalls a node: until it is over; dataplane::kNever: for ever
  std::vector<Outage> outages;  // by their ends
  bool guests = false;          // another job comes and goes during the whole run
  std::int64_t limit = 0;       // virtual time within which everything must have ended

  // A collective as this job submits it: with a root and a lane that the job has, a count that its
  // ranks can share, and carriers if the job is reproducible. It takes no more room than room().
  Collective collective(unsigned job, std::size_t index) const;
  // Bytes that every job leaves for the buffer of a collective.
  std::uint64_t room(std::size_t index) const;
};

Scenario draw_scenario(std::uint64_t seed);
// How long the pollers' iterations are, how late the control thread is, and on how many lcores a
// server adds up. Drawn by itself: what else is drawn from the seed stays as it is.
void draw_schedule(std::uint64_t seed, SimulationSettings& simulation);
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

#endif  // GRADCUBE_TESTS_SIMULATION_SCENARIO_H_
