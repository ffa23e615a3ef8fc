// The run itself: trainers join and submit, the misfortune strikes, and all leave again.

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string_view>

#include "dataplane/daemon/trainers/trainer_channel.h"
#include "tests/simulation/disagree.h"
#include "tests/simulation/judgement.h"
#include "tests/simulation/mail_streams.h"
#include "tests/simulation/scenario.h"

namespace gradcube::simulation {

namespace {

class Run {
 public:
  explicit Run(const Scenario& scenario)
      : scenario_(scenario), cluster_(scenario.simulation), random_(scenario.simulation.seed ^ 1) {
    for (const Outage& outage : scenario.outages) outages_.push_back({outage});
  }

  Outcome play() {
    join();
    if (!outcome_.complaints.empty()) return std::move(outcome_);
    const bool ended = cluster_.run_until([this] { return step(); }, scenario_.limit);
    if (ended) finish_mail();
    if (!ended) complain_of_the_unfinished();
    judgement_.judge(workers_, damage_);
    outcome_.virtual_time = cluster_.now();
    outcome_.trace = cluster_.trace();
    leave_all();
    if (!outcome_.complaints.empty()) return std::move(outcome_);
    work_anew();
    return std::move(outcome_);
  }

 private:
  struct OutageState {
    Outage drawn;
    bool down = false;
  };

  bool unlucky(const Worker& worker) const {
    return worker.job == 0 && worker.rank == scenario_.victim;
  }

  void join() {
    const std::size_t last = scenario_.collectives.size() - 1;
    const std::uint64_t mail =
        (scenario_.collectives[last].offset + scenario_.room(last) + 4096) / 4096 * 4096;
    const std::uint64_t heap = mail + MailStreams::kRoom - shared::kHeapOffset;
    for (unsigned job = 0; job < scenario_.jobs.size(); ++job) {
      mail_.emplace_back(scenario_.simulation.seed ^ (job + 2), mail);
      const ScenarioJob& facts = scenario_.jobs[job];
      for (std::size_t i = 0; i < facts.options.members.size(); ++i) {
        const unsigned place = facts.ranks.empty() ? static_cast<unsigned>(i) : facts.ranks[i];
        const unsigned trainers = facts.options.trainers;
        for (unsigned local = 0; local < trainers; ++local) {
          dataplane::TrainerRequest request{fmt::format("job-{}", job), 1000};
          request.heap_bytes = heap;
          request.options = facts.options;
          if (!facts.ranks.empty()) request.rank = place * trainers + local;
          join(job, place * trainers + local, facts.options.members[i], request);
        }
      }
    }
    // What goes wrong goes wrong later: a trainer that comes after that begins a job of its own.
    const bool all = cluster_.run_until(
        [this] {
          return std::all_of(workers_.begin(), workers_.end(),
                             [](const Worker& worker) { return worker.trainer->admitted(); }) &&
                 !any_job_gathers();
        },
        scenario_.limit);
    if (!all) return judgement_.complain("a trainer was not admitted");
    for (const Worker& worker : workers_) mail_[worker.job].add(worker.rank, *worker.trainer);
  }

  // A server's first trainer is admitted before its job's leader has heard of the others there.
  bool any_job_gathers() {
    const auto jobs = cluster_.cluster().nodes().jobs(cluster_.instant());
    return std::any_of(jobs.begin(), jobs.end(), [](const dataplane::JobFacts& job) {
      return job.state == dataplane::JobState::gathering;
    });
  }

  void join(unsigned job, unsigned rank, bcube::ServerId server,
            const dataplane::TrainerRequest& request) {
    Worker& worker = workers_.emplace_back();
    worker.job = job;
    worker.rank = rank;
    worker.trainer = cluster_.join(server, request);
    worker.submits_at = cluster_.now() + pause();
    worker.codes.resize(scenario_.collectives.size());
    if (worker.rank == scenario_.late_rank) worker.submits_at += scenario_.late_until;
  }

  std::int64_t pause() {
    return scenario_.pause == 0 ? 0
                                : static_cast<std::int64_t>(
                                      random_.below(static_cast<std::uint64_t>(scenario_.pause)));
  }

  // What the trainers do between two turns; true when all are through or something is wrong.
  bool step() {
    if (scenario_.guests && random_.below(300) == 0) let_guests_come_or_go();
    if (cluster_.now() >= over_at_) end_misfortune();
    for (OutageState& outage : outages_) change_link(outage);
    bool all_done = true;
    for (Worker& worker : workers_) {
      if (worker.gone || stands_still(worker)) continue;
      take_completions(worker);
      submit(worker);
      if (!worker.gone) cluster_.look_at(mail_[worker.job].act(worker.rank, cluster_.now()));
      if (!worker.gone && worker.ended < scenario_.collectives.size()) all_done = false;
    }
    cluster_.look_at(over_at_);
    // What has gone wrong is said at once, not at the end of all time.
    return (all_done && over_at_ == dataplane::kNever) || !outcome_.complaints.empty();
  }

  void take_completions(Worker& worker) {
    for (const shared::Completion& completion : worker.trainer->take_completions()) {
      if (completion.request >= MailStreams::kNames) {
        mail_[worker.job].take(worker.rank, completion);
      } else {
        end(worker, completion);
      }
    }
  }

  // What nobody has met is withdrawn, and the rest arrives.
  void finish_mail() {
    for (Worker& worker : workers_) {
      MailStreams& mail = mail_[worker.job];
      worker.gone ? mail.lose(worker.rank) : mail.finish(worker.rank);
    }
    const bool ended = cluster_.run_until(
        [this] {
          for (OutageState& outage : outages_) change_link(outage);
          for (Worker& worker : workers_) {
            if (!worker.gone) take_completions(worker);
          }
          return std::all_of(mail_.begin(), mail_.end(),
                             [](const MailStreams& mail) { return mail.has_ended(); });
        },
        scenario_.limit);
    if (!ended) judgement_.complain("messages that were withdrawn do not end");
    for (unsigned job = 0; job < mail_.size(); ++job) {
      const bool may_fail = judgement_.may_fail(job, damage_);
      for (const std::string& what : mail_[job].judge(may_fail)) {
        judgement_.complain(fmt::format("job {}: {}", job, what));
      }
    }
  }

  // Takes its link down or brings it up, or changes how long its frames may be, when it is time.
  void change_link(OutageState& outage) {
    const bool down = cluster_.now() >= outage.drawn.from && cluster_.now() < outage.drawn.until;
    if (down != outage.down) {
      dataplane::EmbeddedFabric& fabric = cluster_.cluster().emulated();
      fabric.change_impairments({fabric.links()[outage.drawn.link % fabric.links().size()]},
                                [&](dataplane::Impairments impairments) {
                                  impairments.up = !down || outage.drawn.mtu != 0;
                                  impairments.mtu = down ? outage.drawn.mtu : 0;
                                  return impairments;
                                });
      outage.down = down;
    }
    if (cluster_.now() < outage.drawn.from) cluster_.look_at(outage.drawn.from);
    if (down) cluster_.look_at(outage.drawn.until);
  }

  bool stands_still(const Worker& worker) const {
    return still_.has_value() && worker.trainer->server() == *still_;
  }

  void end(Worker& worker, const shared::Completion& completion) {
    const std::optional<Collective> ended = judgement_.take(worker, completion);
    // The buffer is the trainer's again, whatever the neighbours are doing.
    if (ended.has_value()) scribble(*worker.trainer, *ended);
  }

  void let_guests_come_or_go() {
    if (guests_.empty()) {
      // A server that is cut off keeps each of them for 2 s, and has room for 64 jobs.
      if (cluster_.now() < guests_come_at_) return;
      guests_come_at_ = cluster_.now() + 50'000'000;
      for (const bcube::ServerId server : cluster_.nodes().servers()) {
        if (server != still_ && !let_a_guest_come(server)) return;
      }
      return;
    }
    for (const auto& guest : guests_) {
      cluster_.leave(*guest, dataplane::Departure::orderly);
    }
    guests_.clear();
  }

  // False: the other jobs have left it no packet memory, or a server that stood still has ended its
  // job.
  bool let_a_guest_come(bcube::ServerId server) {
    try {
      guests_.push_back(cluster_.join("guests", server, 4096));
      return true;
    } catch (const dataplane::JoinRefused& refused) {
      const std::string_view why = refused.what();
      const auto says = [why](const char* what) {
        return why.find(what) != std::string_view::npos;
      };
      if (!says("of packet memory") && !says("has ended")) throw;
      return false;
    }
  }

  void submit(Worker& worker) {
    while (!worker.gone && !stands_still(worker) && worker.next < scenario_.collectives.size() &&
           worker.next - worker.ended < scenario_.most_in_flight) {
      if (cluster_.now() < worker.submits_at) return cluster_.look_at(worker.submits_at);
      Collective order = scenario_.collective(worker.job, worker.next);
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
        disagree(order, scenario_.jobs[0].options.all_trainers(), random_);
        return false;
      case Misfortune::node_death:
      case Misfortune::node_restart:
      case Misfortune::node_pause:
      case Misfortune::mute:
      case Misfortune::cut_off:
        return strike_node(worker.trainer->server());
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
        damage_.all_ended_before_leaving = worker.next == worker.ended;
        damage_.ran_before_leaving = worker.ended != 0;
        cluster_.leave(*worker.trainer, scenario_.misfortune == Misfortune::death
                                            ? dataplane::Departure::death
                                            : dataplane::Departure::orderly);
        return true;
    }
    return false;
  }

  // True if the node is gone, and its trainers with it.
  bool strike_node(bcube::ServerId server) {
    damage_.struck = server;
    over_at_ =
        scenario_.lasts == dataplane::kNever ? dataplane::kNever : cluster_.now() + scenario_.lasts;
    switch (scenario_.misfortune) {
      case Misfortune::node_pause:
        still_ = server;
        cluster_.stop(server);
        return false;
      case Misfortune::mute:
      case Misfortune::cut_off:
        cluster_.cut_off(server, scenario_.misfortune == Misfortune::cut_off);
        return false;
      default:
        break;
    }
    cluster_.kill(server);
    if (scenario_.misfortune == Misfortune::node_death) over_at_ = dataplane::kNever;
    for (Worker& worker : workers_) {
      if (worker.trainer->server() == server) worker.gone = true;
    }
    std::erase_if(guests_, [&](const auto& guest) { return guest->server() == server; });
    return true;
  }

  void end_misfortune() {
    over_at_ = dataplane::kNever;
    if (scenario_.misfortune == Misfortune::node_restart) {
      cluster_.start_anew(*damage_.struck);
    } else if (scenario_.misfortune == Misfortune::node_pause) {
      still_.reset();
      cluster_.go_on(*damage_.struck);
    } else {
      cluster_.mend();
    }
  }

  void complain_of_the_unfinished() {
    for (const Worker& worker : workers_) {
      if (worker.gone || worker.ended == scenario_.collectives.size()) continue;
      const auto first = std::find(worker.codes.begin(), worker.codes.end(), std::nullopt);
      const auto index = static_cast<std::size_t>(first - worker.codes.begin());
      const unsigned lane = scenario_.collective(worker.job, index).lane;
      std::uint64_t number = 1;
      for (std::size_t i = 0; i < index; ++i) {
        if (scenario_.collective(worker.job, i).lane == lane) ++number;
      }
      judgement_.complain_of(worker, index, cluster_.explain(*worker.trainer, {lane, number}));
    }
  }

  void leave_all() {
    if (scenario_.lasts == dataplane::kNever) cluster_.mend();
    for (OutageState& outage : outages_) {
      outage.drawn.until = cluster_.now();
      change_link(outage);
    }
    for (const auto& guest : guests_) cluster_.leave(*guest, dataplane::Departure::orderly);
    guests_.clear();
    for (Worker& worker : workers_) {
      if (!worker.gone) cluster_.leave(*worker.trainer, dataplane::Departure::orderly);
    }
    const bool drained = cluster_.run_until(
        [this] { return cluster_.idle() && cluster_.packets_in_use() == 0; }, 30'000'000'000);
    if (!drained) {
      judgement_.complain(
          fmt::format("{} packets have leaked, or a node keeps a job", cluster_.packets_in_use()));
    }
    if (!cluster_.jobs().empty()) {
      judgement_.complain("jobs remain after all have left");
    }
  }

  // Whatever has happened: trainers can join again, and a sum is right. On the servers that are
  // left.
  void work_anew() {
    dataplane::TrainerRequest request{"anew", 1};
    request.heap_bytes = 1 << 16;
    const auto servers = cluster_.nodes().servers();
    if (servers.size() != cluster_.servers()) return;
    std::vector<std::unique_ptr<SimulatedTrainer>> trainers;
    for (const bcube::ServerId server : servers) trainers.push_back(cluster_.join(server, request));
    Collective collective;
    collective.count = 1'000;
    std::size_t ended = 0;
    std::set<SimulatedTrainer*> submitted;
    const bool done = cluster_.run_until(
        [&] {
          for (const auto& trainer : trainers) {
            if (!trainer->admitted()) continue;
            if (submitted.insert(trainer.get()).second) fill_and_submit(*trainer, collective);
            for (const auto& completion : trainer->take_completions()) {
              ended += completion.code == 0 ? 1 : 0;
            }
          }
          return ended == trainers.size();
        },
        60'000'000'000);
    if (!done) {
      judgement_.complain("no collective ends after all this: " +
                          cluster_.explain(*trainers.front(), {0, 1}));
    }
    const control::Plan& plan = cluster_.choice().plan_of(collective.kind, collective.bytes());
    const Expected expected = expected_result(plan, {}, collective, 0);
    for (const auto& trainer : trainers) {
      if (done && wrong_elements(*trainer, collective, expected) != 0) {
        judgement_.complain("a sum is wrong after all this");
      }
      cluster_.leave(*trainer, dataplane::Departure::orderly);
    }
    cluster_.run_until([this] { return cluster_.packets_in_use() == 0; }, 30'000'000'000);
  }

  const Scenario& scenario_;
  SimulatedCluster cluster_;
  dataplane::SeededRandom random_;
  std::vector<Worker> workers_;
  std::vector<MailStreams> mail_;  // by job
  std::vector<std::unique_ptr<SimulatedTrainer>> guests_;
  std::int64_t guests_come_at_ = 0;  // not before
  std::vector<OutageState> outages_;
  Damage damage_;
  std::optional<bcube::ServerId> still_;
  std::int64_t over_at_ = dataplane::kNever;
  Outcome outcome_;
  Judgement judgement_{scenario_, outcome_};
};

}  // namespace

Outcome play(const Scenario& scenario) { return Run(scenario).play(); }

}  // namespace gradcube::simulation
