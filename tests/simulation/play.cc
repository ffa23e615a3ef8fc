#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "tests/simulation/scenario.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {

namespace {

// One trainer as it goes through its list of collectives.
struct Worker {
  unsigned job = 0;
  std::unique_ptr<SimulatedTrainer> trainer;
  std::size_t next = 0;  // the collective to submit next
  std::int64_t submits_at = 0;
  std::vector<std::int32_t> codes;  // of what has ended, in order
  bool gone = false;
};

class Run {
 public:
  explicit Run(const Scenario& scenario)
      : scenario_(scenario), cluster_(scenario.simulation), random_(scenario.simulation.seed ^ 1) {}

  Outcome play() {
    join();
    const bool ended = cluster_.run_until([this] { return step(); }, scenario_.limit);
    if (!ended) complain_of_the_unfinished();
    check_results();
    outcome_.virtual_time = cluster_.now();
    outcome_.trace = cluster_.trace();
    leave_all();
    return std::move(outcome_);
  }

 private:
  bool unlucky(const Worker& worker) const {
    return worker.job == 0 && worker.trainer->rank() == scenario_.victim;
  }
  // The collectives in flight fail, and the job goes on.
  bool job_survives() const {
    return scenario_.misfortune == Misfortune::disagreement ||
           scenario_.misfortune == Misfortune::overflow;
  }
  Collective collective(unsigned job, std::size_t index) const {
    Collective collective = scenario_.collectives[index];
    collective.salt += job * 1000;
    if (job != 0) collective.overflows = false;
    return collective;
  }

  void join() {
    const Collective& last = scenario_.collectives.back();
    const std::uint64_t heap = last.offset + last.bytes() + 4096 - shared::kHeapOffset;
    for (unsigned job = 0; job < scenario_.jobs; ++job) {
      for (auto& trainer : cluster_.join_all(fmt::format("job-{}", job), heap)) {
        workers_.push_back({job, std::move(trainer), 0, 0, {}, false});
        workers_.back().submits_at = cluster_.now() + pause();
      }
    }
  }

  std::int64_t pause() {
    return scenario_.pause == 0 ? 0
                                : static_cast<std::int64_t>(
                                      random_.below(static_cast<std::uint64_t>(scenario_.pause)));
  }

  // What the trainers do between two turns; true when all are through.
  bool step() {
    if (scenario_.guests && random_.below(300) == 0) let_guests_come_or_go();
    bool all_done = true;
    for (Worker& worker : workers_) {
      if (worker.gone) continue;
      for (const shared::Completion& completion : worker.trainer->take_completions()) {
        if (completion.request != worker.codes.size() + 1) complain(worker, "is out of order");
        worker.codes.push_back(completion.code);
      }
      submit(worker);
      if (!worker.gone && worker.codes.size() < scenario_.collectives.size()) all_done = false;
    }
    return all_done;
  }

  void let_guests_come_or_go() {
    if (guests_.empty()) {
      guests_ = cluster_.join_all("guests", 4096);
      return;
    }
    for (const auto& guest : guests_) {
      cluster_.leave(*guest, dataplane::Departure::orderly);
    }
    guests_.clear();
  }

  void submit(Worker& worker) {
    while (!worker.gone && worker.next < scenario_.collectives.size() &&
           worker.trainer->in_flight() < scenario_.most_in_flight &&
           cluster_.now() >= worker.submits_at) {
      Collective order = collective(worker.job, worker.next);
      if (unlucky(worker) && worker.next == scenario_.when && strike(worker, order)) return;
      fill_and_submit(*worker.trainer, order);
      ++worker.next;
      worker.submits_at = cluster_.now() + pause();
    }
  }

  // The misfortune, just before the victim's fateful submission. True if it submits nothing more.
  bool strike(Worker& worker, Collective& order) {
    switch (scenario_.misfortune) {
      case Misfortune::none:
      case Misfortune::overflow:  // of all trainers' inputs
        return false;
      case Misfortune::disagreement:
        disagree(order);
        return false;
      case Misfortune::scribbled_ring:
        worker.trainer->header().submission_tail.store(random_.next() | 1ULL << 63);
        worker.gone = true;
        return true;
      case Misfortune::orderly_leave:
      case Misfortune::death:
        if (scenario_.misfortune == Misfortune::death && random_.below(2) == 0) {
          fill_and_submit(*worker.trainer, order);
        }
        worker.gone = true;
        all_ended_before_leaving_ = worker.trainer->in_flight() == 0;
        cluster_.leave(*worker.trainer, scenario_.misfortune == Misfortune::death
                                            ? dataplane::Departure::death
                                            : dataplane::Departure::orderly);
        return true;
    }
    return false;
  }

  void disagree(Collective& order) {
    switch (random_.below(3)) {
      case 0:
        order.count = order.count == 0 ? 1 : order.count - 1;
        break;
      case 1:
        do {
          order.operation = static_cast<aggregation::Operation>(
              (static_cast<unsigned>(order.operation) + 1) % aggregation::kOperations);
        } while (!aggregation::supports(order.dtype, order.operation));
        break;
      default:
        // Of no more bytes, so that it fits where the right one would have been.
        const std::uint64_t room = order.bytes();
        order.dtype = order.dtype == aggregation::DataType::float32
                          ? aggregation::DataType::int32
                          : aggregation::DataType::float32;
        order.count = std::min<std::uint64_t>(order.count, room / 8);
        break;
    }
  }

  void complain(const Worker& worker, const std::string& what) {
    if (outcome_.complaints.size() > 10) return;
    outcome_.complaints.push_back(fmt::format("job {} server {} collective {}: {}", worker.job,
                                              worker.trainer->rank(), worker.codes.size() + 1,
                                              what));
  }

  void complain_of_the_unfinished() {
    for (const Worker& worker : workers_) {
      if (worker.gone || worker.codes.size() == scenario_.collectives.size()) continue;
      complain(worker, cluster_.coordinator().explain(worker.trainer->member(),
                                                      {0, worker.codes.size() + 1}));
    }
  }

  void check_results() {
    for (unsigned job = 0; job < scenario_.jobs; ++job) {
      for (std::size_t i = 0; i < scenario_.collectives.size(); ++i) check_collective(job, i);
    }
  }

  void check_collective(unsigned job, std::size_t index) {
    const Collective order = collective(job, index);
    std::vector<std::uint8_t> expected;
    if (!order.overflows) expected = expected_result(cluster_.plan(), order);
    unsigned right = 0;
    unsigned failed = 0;
    for (Worker& worker : workers_) {
      if (worker.job != job || index >= worker.codes.size()) continue;
      if (worker.codes[index] == 0) {
        ++right;
        const std::size_t wrong =
            order.overflows ? 1 : wrong_elements(*worker.trainer, order, expected);
        if (wrong != 0) complain_of(worker, index, fmt::format("{} elements are wrong", wrong));
      } else {
        ++failed;
      }
      check_code(worker, index);
    }
    if (job_survives() && job == 0 && index > scenario_.when && right != 0 && failed != 0) {
      outcome_.complaints.push_back(fmt::format(
          "collective {} after the failed one succeeded at {} servers only", index + 1, right));
    }
    outcome_.succeeded += right;
    outcome_.failed += failed;
  }

  void complain_of(const Worker& worker, std::size_t index, const std::string& what) {
    outcome_.complaints.push_back(fmt::format("job {} server {} collective {}: {}", worker.job,
                                              worker.trainer->rank(), index + 1, what));
  }

  // Whether a collective may, or must, have ended in this way.
  void check_code(const Worker& worker, std::size_t index) {
    const std::int32_t code = worker.codes[index];
    const bool struck = worker.job == 0 && scenario_.misfortune != Misfortune::none;
    const auto refuse = [&] {
      complain_of(worker, index, fmt::format("ended with code {}", code));
    };
    if (!struck) {
      if (code != 0) refuse();
      return;
    }
    if (job_survives()) {
      const bool overflow = scenario_.misfortune == Misfortune::overflow;
      if (code != 0 && code != (overflow ? GRADCUBE_EOVERFLOW : GRADCUBE_EMISMATCH)) refuse();
      if (index == scenario_.when && code == 0) refuse();
      return;
    }
    if (code != 0 && code != GRADCUBE_EPEER) refuse();
    const bool submitted_by_all = index < scenario_.when;
    if (!submitted_by_all && code == 0 && scenario_.misfortune != Misfortune::death) refuse();
    const bool drain_suffices = scenario_.simulation.cluster.loss <= 0.02;
    if (submitted_by_all && code != 0 && all_ended_before_leaving_ && drain_suffices) refuse();
  }

  void leave_all() {
    if (!guests_.empty()) let_guests_come_or_go();
    for (Worker& worker : workers_) {
      if (!worker.gone) cluster_.leave(*worker.trainer, dataplane::Departure::orderly);
    }
    const bool drained =
        cluster_.run_until([this] { return cluster_.packets_in_use() == 0; }, 1'000'000'000);
    if (!drained) {
      outcome_.complaints.push_back(
          fmt::format("{} packets have leaked", cluster_.packets_in_use()));
    }
    if (!cluster_.coordinator().facts().empty()) {
      outcome_.complaints.push_back("jobs remain after all have left");
    }
  }

  const Scenario& scenario_;
  SimulatedCluster cluster_;
  dataplane::SeededRandom random_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<SimulatedTrainer>> guests_;
  bool all_ended_before_leaving_ = false;
  Outcome outcome_;
};

}  // namespace

Outcome play(const Scenario& scenario) { return Run(scenario).play(); }

}  // namespace gradcube::simulation
