// One job on all servers of a small cluster, and a collective of it.
#ifndef GRADCUBE_TESTS_SIMULATION_JOBS_FIXTURE_H_
#define GRADCUBE_TESTS_SIMULATION_JOBS_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/work.h"

namespace gradcube::simulation {

// Of a job of so many lanes, one trainer per server.
inline Trainers join_with_lanes(SimulatedCluster& cluster, std::size_t lanes,
                                std::uint64_t heap_bytes = 1 << 20) {
  dataplane::TrainerRequest request{"job", 1};
  request.heap_bytes = heap_bytes;
  request.options.lanes.resize(lanes);
  Trainers trainers;
  for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
    trainers.push_back(cluster.join(server, request));
  }
  return trainers;
}

class Jobs : public testing::Test {
 protected:
  explicit Jobs(const std::string& loss = "0")
      : cluster_(settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}, {"loss", loss}})) {
    collective_.count = 5'003;
  }

  void submit_all(const Trainers& trainers) {
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective_);
  }
  // The codes of what has ended at this trainer since the last look.
  static std::vector<std::int32_t> codes(SimulatedTrainer& trainer) {
    std::vector<std::int32_t> codes;
    for (const shared::Completion& completion : trainer.take_completions()) {
      codes.push_back(completion.code);
    }
    return codes;
  }
  std::string last_message(const SimulatedTrainer& trainer) {
    const auto& told = cluster_.told(trainer);
    return told.empty() ? "" : told.back().notice.text;
  }
  Trainers join() { return cluster_.join_all("job", heap_for(collective_)); }

  SimulatedCluster cluster_;
  Collective collective_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_JOBS_FIXTURE_H_
