// What is judged in every run of a simulated cluster.
#include <algorithm>
#include <fmt/format.h>

#include "tests/unit/control/job_simulation.h"

namespace gradcube::control {

using bcube::ServerId;
using std::chrono::milliseconds;

void JobSimulation::complain(const std::string& what) {
  if (complaints_.size() < 5) {
    complaints_.push_back(
        fmt::format("at {} ms: {}", std::chrono::duration_cast<milliseconds>(now_).count(), what));
  }
}

void JobSimulation::judge() {
  std::map<JobId, std::vector<std::pair<ServerId, const Trainer*>>> by_job;
  for (ServerId server = 0; server < space_.servers(); ++server) {
    const Node& node = nodes_[server];
    if (node.control == nullptr) continue;
    if (!node.control->idle() || !node.engines.empty()) {
      complain(fmt::format("server {} keeps state: {} agents, {} leaders, {} engines", server,
                           node.control->agents().size(), node.control->leaders().size(),
                           node.engines.size()));
    }
    for (const auto& [attempt, trainer] : node.trainers) {
      if (trainer.job != protocol::kNoJob) by_job[trainer.job].push_back({server, &trainer});
      if (!trainer.alive || trainer.leaves || trainer.ended) continue;
      complain(fmt::format("the trainer {} of server {} waits for ever", attempt, server));
    }
    if (options_.rejoins) judge_rejoin(server);
  }
  for (const auto& [job, trainers] : by_job) judge_job(trainers);
  judge_broken_links();
}

// The trainer that joined last has done all its work: what it has not submitted has failed by then.
void JobSimulation::judge_rejoin(ServerId server) {
  const auto& trainers = nodes_[server].trainers;
  if (trainers.empty() || (trainers.size() < 2 && nodes_[server].boots == 1)) {
    complain(fmt::format("no trainer of server {} has joined again", server));
    return;
  }
  const Trainer& trainer = trainers.rbegin()->second;
  const LaneNumbers all(job_options_.lanes.size(), collectives_);
  bool done = trainer.leaves || trainer.common == all;
  for (const auto& outcomes : trainer.outcomes) {
    done = done && std::all_of(outcomes.begin(), outcomes.end(),
                               [](int outcome) { return outcome > kOpen; });
  }
  if (!done) complain(fmt::format("server {}'s new trainer has not done its work", server));
}

// A daemon that was restarted or stood still meanwhile may have been found silent at any time.
void JobSimulation::judge_broken_links() {
  for (const Broken& link : broken_) {
    const bool undisturbed =
        std::all_of(link.incarnations.begin(), link.incarnations.end(), [&](const auto& end) {
          const Node& node = nodes_[end.first];
          return node.control != nullptr && node.incarnation == end.second &&
                 !stopped_.contains(end.first);
        });
    if (!undisturbed) continue;
    if (!nodes_[link.to].silent.contains(link.from)) {
      complain(fmt::format("server {} takes server {}, which it does not hear, for alive", link.to,
                           link.from));
    }
    if (!nodes_[link.from].silent.contains(link.to)) {
      complain(fmt::format("server {} takes server {}, which does not hear it, for alive",
                           link.from, link.to));
    }
  }
}

void JobSimulation::judge_order(const Trainer& trainer) {
  const auto [lane, failing] = (odd_.empty() ? overflows_ : odd_).begin()->first;
  for (std::uint64_t c = 1; c < failing; ++c) {
    if (c <= trainer.outcomes[lane].size() && trainer.outcomes[lane][c - 1] == kDone) continue;
    complain(fmt::format("collective {} of lane {} has not completed, and {} is the one that fails",
                         c, lane, failing));
  }
}

// Of a job that ran until its last trainer left.
void JobSimulation::judge_departures(
    const std::vector<std::pair<ServerId, const Trainer*>>& trainers) {
  const bool began = std::all_of(trainers.begin(), trainers.end(), [](const auto& each) {
    return !each.second->left_early && each.second->was_set_up;
  });
  if (!began || trainers.size() != space_.servers()) return;
  for (std::size_t lane = 0; lane < job_options_.lanes.size(); ++lane) {
    std::uint64_t shared = collectives_;
    for (const auto& [server, trainer] : trainers) {
      if (trainer->left_with.has_value()) shared = std::min(shared, (*trainer->left_with)[lane]);
    }
    for (const auto& [server, trainer] : trainers) {
      if (!trainer->alive) continue;
      for (std::uint64_t i = 0; i < trainer->outcomes[lane].size(); ++i) {
        const int outcome = trainer->outcomes[lane][i];
        const bool may_fail = i >= shared || job_options_.lanes.size() > 1;
        if ((i < shared && outcome == kDone) || (may_fail && outcome == kDeparted)) continue;
        complain(fmt::format("collective {} of lane {} is {} on server {}: all have submitted {}",
                             i + 1, lane, outcome, server, shared));
      }
    }
  }
}

void JobSimulation::judge_job(const std::vector<std::pair<ServerId, const Trainer*>>& trainers) {
  const bool calm = !options_.trainer_faults && !options_.node_faults && !options_.rejoins &&
                    !options_.departures;
  const LaneNumbers all(job_options_.lanes.size(), collectives_);
  if (options_.departures) judge_departures(trainers);
  for (const auto& one : trainers) {
    if (calm && one.second->common.value_or(LaneNumbers{}) != all && !one.second->leaves) {
      complain(fmt::format("a calm job did not end all collectives on server {}", one.first));
    }
    if (calm && odd_.size() + overflows_.size() == 1) judge_order(*one.second);
    for (const auto& other : trainers) judge_pair(one, other);
  }
}

void JobSimulation::judge_pair(std::pair<ServerId, const Trainer*> one,
                               std::pair<ServerId, const Trainer*> other) {
  const ServerId server = one.first;
  const ServerId other_server = other.first;
  const Trainer* a = one.second;
  const Trainer* b = other.second;
  const bool parted = std::any_of(broken_.begin(), broken_.end(), [&](const Broken& link) {
    return (link.from == server && link.to == other_server) ||
           (link.to == server && link.from == other_server);
  });
  const bool trusted = !parted && !a->gone.contains(other_server) && !b->gone.contains(server);
  const bool both = a->common.has_value() && b->common.has_value();
  if (both && trusted && *a->common != *b->common) {
    complain(fmt::format("servers {} and {} learn different numbers", server, other_server));
  }
  if (!a->alive || !b->alive) return;
  for (std::size_t lane = 0; lane < a->outcomes.size(); ++lane) {
    const auto& here = a->outcomes[lane];
    const auto& there = b->outcomes[lane];
    for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
      const bool known = here[i] > kOpen && there[i] > kOpen;
      if (known && here[i] != there[i] && !may_differ(lane, i + 1)) {
        complain(fmt::format("collective {} of lane {} is {} on server {} and {} on server {}",
                             i + 1, lane, here[i], server, there[i], other_server));
      }
      if (trusted && both && i < (*a->common)[lane] && !known) {
        complain(
            fmt::format("collective {} of lane {} is said to have ended on servers {} and "
                        "{}, and has not",
                        i + 1, lane, server, other_server));
      }
    }
  }
}

// From the overflow to the end of what its reset fails.
bool JobSimulation::may_differ(std::size_t lane, std::uint64_t collective) const {
  return std::any_of(overflows_.begin(), overflows_.end(), [&](const auto& overflow) {
    return overflow.first.first == lane && overflow.first.second <= collective;
  });
}

}  // namespace gradcube::control
