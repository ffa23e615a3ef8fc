#include "tests/simulation/judgement.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {

Judgement::RunningJob Judgement::running(const ScenarioJob& job,
                                         const control::Topology& topology) {
  const auto placement = control::Placement::of(topology, job.options.members, "members")
                             .with_trainers(job.options.trainers, "trainers");
  RunningJob result;
  for (const control::LaneOptions& lane : job.options.lanes) {
    const std::string_view algorithm = lane.algorithm.empty()
                                           ? control::default_algorithm_of_jobs(topology, placement)
                                           : std::string_view(lane.algorithm);
    result.plans.push_back(control::make_choice(algorithm, topology, placement, "algorithm"));
  }
  if (!job.ranks.empty()) result.order = dataplane::RankOrder(job.ranks);
  return result;
}

Judgement::Judgement(const Scenario& scenario, Outcome& outcome)
    : scenario_(scenario), outcome_(outcome) {
  for (const ScenarioJob& job : scenario_.jobs) {
    jobs_.push_back(running(job, scenario_.simulation.cluster.rated_topology()));
  }
}

void Judgement::complain_of(const Worker& worker, std::size_t index, const std::string& what) {
  if (outcome_.complaints.size() > 10) return;
  complain(
      fmt::format("job {} rank {} collective {}: {}", worker.job, worker.rank, index + 1, what));
}

std::optional<Collective> Judgement::take(Worker& worker, const shared::Completion& completion) {
  const std::size_t index = completion.request - 1;
  if (index >= worker.next || worker.codes[index].has_value()) {
    complain_of(worker, index, "ended twice or before it was submitted");
    return std::nullopt;
  }
  const Collective order = scenario_.collective(worker.job, index);
  if (index < worker.through[order.lane]) {
    complain_of(worker, index, "ended behind a later one of its lane");
  }
  worker.through[order.lane] = index + 1;
  worker.codes[index] = completion.code;
  ++worker.ended;
  if (completion.code == 0) check_bits(worker, index, order);
  return order;
}

void Judgement::check_bits(Worker& worker, std::size_t index, const Collective& order) {
  const RunningJob& job = jobs_[worker.job];
  const control::Plan& plan = job.plans[order.lane].plan_of(order.kind, order.bytes());
  const unsigned rank = worker.rank;
  const unsigned of = differs_by_rank(order.kind) ? rank : 0;
  // The element that overflows is the last one. Carriers have room for any sum.
  const bool has_result = !order.overflows || order.carries() ||
                          (order.kind == control::CollectiveKind::reduce_scatter &&
                           rank + 1 < plan.placement().trainers());
  if (!has_result) return complain_of(worker, index, "succeeded with a sum that overflows");
  auto [known, fresh] = expected_.try_emplace({worker.job, index, of});
  if (fresh) known->second = expected_result(plan, job.order, order, of);
  const std::size_t wrong = wrong_elements(*worker.trainer, order, known->second);
  if (wrong != 0) complain_of(worker, index, fmt::format("{} elements are wrong", wrong));
}

void Judgement::judge(const std::vector<Worker>& workers, const Damage& damage) {
  for (unsigned job = 0; job < scenario_.jobs.size(); ++job) {
    for (std::size_t i = 0; i < scenario_.collectives.size(); ++i) {
      check_collective(workers, job, i, damage);
    }
  }
}

void Judgement::check_collective(const std::vector<Worker>& workers, unsigned job,
                                 std::size_t index, const Damage& damage) {
  unsigned right = 0;
  unsigned failed = 0;
  for (const Worker& worker : workers) {
    if (worker.job != job || !worker.codes[index].has_value()) continue;
    ++(worker.codes[index] == 0 ? right : failed);
    check_code(worker, index, damage);
  }
  if (right != 0 && failed != 0 && must_end_alike(job, index)) {
    complain(fmt::format("job {} collective {} succeeded at {} servers and failed at {}", job,
                         index + 1, right, failed));
  }
  outcome_.succeeded += right;
  outcome_.failed += failed;
}

bool Judgement::must_end_alike(unsigned job, std::size_t index) const {
  if (job != 0 || befalls_a_node(scenario_.misfortune)) return false;
  if (scenario_.misfortune == Misfortune::scribbled_ring) return false;
  // Chunks can be right where another one overflows, and small collectives behind it too.
  if (scenario_.misfortune == Misfortune::overflow) {
    const Collective first = scenario_.collective(0, scenario_.when);
    const bool everyone_needs_it = first.kind == control::CollectiveKind::all_reduce;
    return everyone_needs_it || index < scenario_.when ||
           scenario_.collective(0, index).lane != first.lane;
  }
  return scenario_.misfortune == Misfortune::disagreement || shared_work_can_be_done();
}

// In the time that the others have after a trainer has gone.
bool Judgement::shared_work_can_be_done() const {
  return scenario_.simulation.cluster.loss <= 0.02 && scenario_.outages.empty();
}

// The collectives in flight fail, and the job goes on.
bool Judgement::job_survives() const {
  return scenario_.misfortune == Misfortune::disagreement ||
         scenario_.misfortune == Misfortune::overflow;
}

// Whether a collective may, or must, have ended in this way.
void Judgement::check_code(const Worker& worker, std::size_t index, const Damage& damage) {
  const std::int32_t code = *worker.codes[index];
  const auto refuse = [&] { complain_of(worker, index, fmt::format("ended with code {}", code)); };
  if (!is_concerned(worker.job, damage)) {
    if (code != 0) refuse();
    return;
  }
  if (job_survives()) {
    const bool overflow = scenario_.misfortune == Misfortune::overflow;
    if (code != 0 && code != (overflow ? GRADCUBE_EOVERFLOW : GRADCUBE_EMISMATCH)) refuse();
    // A chunk can be right where another one overflows: see check_bits().
    if (index == scenario_.when && code == 0 && !overflow) refuse();
    const bool precedes =
        index < scenario_.when &&
        scenario_.collective(0, index).lane == scenario_.collective(0, scenario_.when).lane;
    if (precedes && code != 0) refuse();
    return;
  }
  if (code != 0 && code != GRADCUBE_EPEER) refuse();
  if (befalls_a_node(scenario_.misfortune)) return;
  const bool submitted_by_all = index < scenario_.when;
  if (!submitted_by_all && code == 0 && scenario_.misfortune != Misfortune::death) refuse();
  // Who leaves in order ends nothing that it has submitted. Where there are several lanes, the
  // reset for a later one fails what not all others have submitted yet.
  const bool ends_nothing = scenario_.misfortune == Misfortune::orderly_leave &&
                            damage.ran_before_leaving &&
                            scenario_.jobs[0].options.lanes.size() == 1;
  if (submitted_by_all && code != 0 &&
      (ends_nothing || (damage.all_ended_before_leaving && shared_work_can_be_done()))) {
    refuse();
  }
}

// Whether collectives of the job may fail at all.
bool Judgement::is_concerned(unsigned job, const Damage& damage) const {
  if (scenario_.misfortune == Misfortune::none) return false;
  if (!befalls_a_node(scenario_.misfortune)) return job == 0;
  const bool dies = scenario_.misfortune == Misfortune::node_death ||
                    scenario_.misfortune == Misfortune::node_restart;
  // Shorter than the others are patient.
  if (!dies && scenario_.lasts < 700'000'000) return false;
  const auto& members = scenario_.jobs[job].options.members;
  return damage.struck.has_value() &&
         std::binary_search(members.begin(), members.end(), *damage.struck);
}

}  // namespace gradcube::simulation
