// Whether the collectives of a random run ended as they may: judges each at its end, and all of
// them together after the run. The invariants are those of scenario.h.
//
// Ownership: refers to the scenario and to the outcome, which must outlive it, and holds the right
// results that it has computed. Single-threaded.
#ifndef GRADCUBE_TESTS_SIMULATION_JUDGEMENT_H_
#define GRADCUBE_TESTS_SIMULATION_JUDGEMENT_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "control/plan/plan_choice.h"
#include "dataplane/engine/session/rank_order.h"
#include "tests/simulation/inputs.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_trainer.h"

namespace gradcube::simulation {

// One trainer as it goes through its list of collectives.
struct Worker {
  unsigned job = 0;
  unsigned rank = 0;
  std::unique_ptr<SimulatedTrainer> trainer;
  std::size_t next = 0;  // the collective to submit next
  std::int64_t submits_at = 0;
  std::vector<std::optional<std::int32_t>> codes;  // by collective: of those that have ended
  std::size_t ended = 0;
  std::array<std::size_t, shared::kMaxLanes> through{};  // by lane: behind the last that has ended
  bool gone = false;
};

// What the misfortune has done.
struct Damage {
  std::optional<bcube::ServerId> struck;  // the server whose node it befell
  bool all_ended_before_leaving = false;  // the trainer that left had nothing in flight
  bool ran_before_leaving = false;        // something had ended by then
};

class Judgement {
 public:
  // Adds to the outcome's complaints and counts.
  Judgement(const Scenario& scenario, Outcome& outcome);

  // Something has ended at this worker: takes it down and complains if it may not end there and
  // then, or with these bits. Returns the collective; nothing if there was none to end.
  std::optional<Collective> take(Worker& worker, const shared::Completion& completion);
  // Judges the codes of all that has ended.
  void judge(const std::vector<Worker>& workers, const Damage& damage);
  // Whether the job may end before its trainers leave.
  bool may_fail(unsigned job, const Damage& damage) const {
    return is_concerned(job, damage) && !job_survives();
  }

  void complain(const std::string& what) { outcome_.complaints.push_back(what); }
  // The first ten or so: the others tend to say the same.
  void complain_of(const Worker& worker, std::size_t index, const std::string& what);

 private:
  // The plans of a job's lanes, and the ranks that its trainers see.
  struct RunningJob {
    std::vector<control::PlanChoice> plans;
    dataplane::RankOrder order;
  };
  static RunningJob running(const ScenarioJob& job, const control::Topology& topology);

  void check_bits(Worker& worker, std::size_t index, const Collective& order);
  void check_collective(const std::vector<Worker>& workers, unsigned job, std::size_t index,
                        const Damage& damage);
  bool must_end_alike(unsigned job, std::size_t index) const;
  bool shared_work_can_be_done() const;
  void check_code(const Worker& worker, std::size_t index, const Damage& damage);
  bool is_concerned(unsigned job, const Damage& damage) const;
  bool job_survives() const;

  const Scenario& scenario_;
  Outcome& outcome_;
  std::vector<RunningJob> jobs_;
  // By job, collective and rank; for all ranks under rank 0 where it is the same for all.
  std::map<std::tuple<unsigned, std::size_t, unsigned>, Expected> expected_;
};

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_JUDGEMENT_H_
