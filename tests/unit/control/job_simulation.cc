// The script, the network and the judgement of a simulated cluster.
#include "tests/unit/control/job_simulation.h"

#include <algorithm>
#include <fmt/format.h>

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

constexpr Instant kTick = milliseconds(20);
constexpr Instant kLongest = std::chrono::seconds(60);

}  // namespace

JobSimulation::JobSimulation(std::uint64_t seed, SimulationOptions options)
    : random_(seed),
      options_(options),
      space_(std::vector<unsigned>{2 + static_cast<unsigned>(random_() % 4)}),
      collectives_(3 + any(12)) {
  timing_.phase = milliseconds(1000);
  timing_.run_on = milliseconds(2000);
  timing_.decide = milliseconds(1000);
  timing_.linger = milliseconds(1000);
  for (unsigned lane = 0; lane <= any(3); ++lane) job_options_.lanes.push_back({"bml", 0});
  for (ServerId server = 0; server < space_.servers(); ++server) {
    job_options_.members.push_back(server);
  }
  nodes_.resize(space_.servers());
  if (options_.message_faults) {
    loss_ = 0.05 * any(7);
    doubled_ = 0.1 * any(4);
  }
  for (ServerId server = 0; server < space_.servers(); ++server) {
    boot(server);
    at(milliseconds(any(300)), [this, server] { join(server); });
  }
  plan_faults();
  if (options_.node_faults) plan_node_faults();
}

bool JobSimulation::chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

unsigned JobSimulation::any(unsigned below) { return static_cast<unsigned>(random_() % below); }

void JobSimulation::plan_faults() {
  for (unsigned i = options_.disagreements ? any(4) : 0; i > 0; --i) {
    const unsigned lane = any(static_cast<unsigned>(job_options_.lanes.size()));
    odd_[{lane, 1 + any(collectives_)}] = any(space_.servers());
  }
  for (unsigned i = options_.trainer_faults ? 1 + any(2) : 0; i > 0; --i) {
    const ServerId server = any(space_.servers());
    const unsigned how = any(3);
    at(milliseconds(any(1200)), [this, server, how] {
      Node& node = nodes_[server];
      if (node.control == nullptr || node.trainers.empty()) return;
      auto& [attempt, trainer] = *node.trainers.rbegin();
      if (!trainer.alive || trainer.ended) return;
      trainer.alive = false;
      const std::string who = fmt::format("the trainer on server {} ", server);
      if (how == 2) event(server, attempt, event::TrainerAborted{who + "aborted"});
      if (how != 2) event(server, attempt, event::TrainerLeft{who + (how == 0 ? "left" : "died")});
      if (chance(0.3)) at(now_ + milliseconds(any(500)), [this, server] { join(server); });
    });
  }
}

void JobSimulation::plan_node_faults() {
  for (unsigned i = 1 + any(3); i > 0; --i) {
    const ServerId server = any(space_.servers());
    const ServerId other = any(space_.servers());
    const Instant begin = milliseconds(any(1500));
    const Instant end = begin + milliseconds(10 + any(2500));
    last_fault_ = std::max(last_fault_, end);
    switch (any(5)) {
      case 0:
        at(begin, [this, server] { kill(server); });
        break;
      case 1:
        at(begin, [this, server] { kill(server); });
        at(end, [this, server] {
          boot(server);
          if (chance(0.5)) join(server);
        });
        break;
      case 2:
        at(begin, [this, server] { nodes_[server].stopped = true; });
        at(end, [this, server] {
          nodes_[server].stopped = false;
          for (const auto& run : std::exchange(nodes_[server].missed, {})) run();
        });
        break;
      default:
        const bool both_ways = any(2) == 0;
        at(begin, [this, server, other, both_ways] {
          cut_.insert({server, other});
          if (both_ways) cut_.insert({other, server});
        });
        at(end, [this] { cut_.clear(); });
    }
  }
}

void JobSimulation::boot(ServerId server) {
  Node& node = nodes_[server];
  if (node.control != nullptr) return;
  ++node.incarnation;
  const auto seed = static_cast<std::uint32_t>(server * 1000 + node.incarnation * 77);
  node.control = std::make_unique<JobNode>(server, node.incarnation, space_, timing_, seed);
  node.liveness = Liveness(milliseconds(600));
  for (ServerId other = 0; other < space_.servers(); ++other) {
    if (other != server) node.liveness.watch(other, now_);
  }
  at(now_ + milliseconds(any(20)), [this, server] { tick(server); });
}

void JobSimulation::kill(ServerId server) {
  Node& node = nodes_[server];
  node.control.reset();
  node.engines.clear();
  node.trainers.clear();
  node.missed.clear();
  node.stopped = false;
}

void JobSimulation::join(ServerId server) {
  Node& node = nodes_[server];
  if (node.control == nullptr) return;
  JobActions out;
  const auto joined = node.control->join({"mnist", server, {1, 1}, job_options_, std::nullopt},
                                         {1500, 64, false}, now_, out);
  if (const auto* attempt = std::get_if<Attempt>(&joined)) {
    Trainer& trainer = node.trainers[*attempt];
    trainer.submitted.resize(job_options_.lanes.size());
    trainer.outcomes.resize(job_options_.lanes.size());
    trainer.give_up = now_ + milliseconds(9000);
  }
  perform(server, std::move(out));
}

// A step of a trainer: submits, notes ends, leaves when all is done or nothing moves.
void JobSimulation::live(Node& node, Attempt attempt, Trainer& trainer) {
  const auto server = static_cast<ServerId>(&node - nodes_.data());
  if (!trainer.alive || trainer.ended || trainer.leaves) return;
  bool all = trainer.job != protocol::kNoJob;
  for (unsigned lane = 0; lane < trainer.submitted.size(); ++lane) {
    auto& asked = trainer.submitted[lane];
    if (trainer.job != protocol::kNoJob && asked.size() < collectives_ && chance(0.4)) {
      const auto odd = odd_.find({lane, asked.size() + 1});
      const bool differs = odd != odd_.end() && odd->second == server;
      asked.push_back(differs ? 2 : 1);
      trainer.outcomes[lane].push_back(kOpen);
    }
    const auto& outcomes = trainer.outcomes[lane];
    all = all && asked.size() == collectives_ &&
          std::find(outcomes.begin(), outcomes.end(), kOpen) == outcomes.end();
  }
  if (!all && now_ < trainer.give_up) return;
  trainer.leaves = true;
  event(server, attempt, event::TrainerLeft{fmt::format("the trainer on server {} left", server)});
}

// What a daemon does from time to time. It greets so often that chance alone makes none silent.
void JobSimulation::tick(ServerId server) {
  Node& node = nodes_[server];
  const Incarnation incarnation = node.incarnation;
  if (node.control == nullptr) return;
  at(now_ + kTick, [this, server, incarnation] {
    on_node(server, incarnation, [this, server](Node&) { tick(server); });
  });
  for (auto& [attempt, trainer] : node.trainers) live(node, attempt, trainer);
  for (auto& [attempt, engine] : node.engines) {
    take(node, attempt, engine);
    contribute(server, engine);
    advance(node, server, attempt, engine);
  }
  for (ServerId other = 0; other < space_.servers(); ++other) {
    if (other == server || !chance(0.7)) continue;
    send(server, other, [this, server, incarnation, other](Node& there) {
      JobActions out;
      there.liveness.on_heard(server, now_);
      there.control->on_heard(server, incarnation, now_, out);
      perform(other, std::move(out));
    });
  }
  JobActions out;
  for (const ServerId silent : node.liveness.take_silent(now_)) {
    node.control->on_server_silent(silent, now_, out);
  }
  if (node.control->deadline().value_or(kLongest) <= now_) node.control->on_time(now_, out);
  perform(server, std::move(out));
}

void JobSimulation::at(Instant when, std::function<void()> run) {
  due_.push({when, order_++, std::move(run)});
}

void JobSimulation::on_node(ServerId server, Incarnation incarnation,
                            std::function<void(Node&)> run) {
  Node& node = nodes_[server];
  if (node.control == nullptr || node.incarnation != incarnation) return;
  if (node.stopped) {
    node.missed.push_back([this, server, incarnation, run] { on_node(server, incarnation, run); });
  } else {
    run(node);
  }
}

bool JobSimulation::crosses(ServerId from, ServerId to) {
  return !cut_.contains({from, to}) && !chance(loss_);
}

Instant JobSimulation::delay() {
  if (!options_.message_faults) return milliseconds(1);
  return milliseconds(chance(0.02) ? any(1500) : 1 + any(40));
}

void JobSimulation::send(ServerId from, ServerId to, std::function<void(Node&)> deliver) {
  for (unsigned copies = chance(doubled_) ? 2 : 1; copies > 0; --copies) {
    if (!crosses(from, to)) continue;
    at(now_ + delay(), [this, to, deliver] { on_node(to, nodes_[to].incarnation, deliver); });
  }
}

bool JobSimulation::quiet() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.control == nullptr ||
           (node.control->idle() && node.engines.empty() &&
            std::all_of(node.trainers.begin(), node.trainers.end(), [](const auto& entry) {
              return entry.second.ended || !entry.second.alive || entry.second.leaves;
            }));
  });
}

std::vector<std::string> JobSimulation::run() {
  while (!due_.empty() && due_.top().at < kLongest) {
    const Due due = due_.top();
    due_.pop();
    now_ = due.at;
    due.run();
    if (now_ > milliseconds(5000) && now_ > last_fault_ + milliseconds(2000) && quiet()) break;
  }
  judge();
  return complaints_;
}

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
  }
  for (const auto& [job, trainers] : by_job) judge_job(trainers);
}

void JobSimulation::judge_job(const std::vector<std::pair<ServerId, const Trainer*>>& trainers) {
  const bool calm = !options_.trainer_faults && !options_.node_faults;
  for (const auto& [server, one] : trainers) {
    if (calm &&
        one->common.value_or(LaneNumbers{}) !=
            LaneNumbers(job_options_.lanes.size(), collectives_) &&
        !one->leaves) {
      complain(fmt::format("a calm job did not end all collectives on server {}", server));
    }
    for (const auto& [other_server, other] : trainers) {
      const bool trusted = !one->gone.contains(other_server) && !other->gone.contains(server);
      const bool both = one->common.has_value() && other->common.has_value();
      if (both && trusted && *one->common != *other->common) {
        complain(fmt::format("servers {} and {} learn different numbers", server, other_server));
      }
      for (std::size_t lane = 0; lane < one->outcomes.size(); ++lane) {
        const auto& a = one->outcomes[lane];
        const auto& b = other->outcomes[lane];
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
          const bool known = one->alive && other->alive && a[i] > kOpen && b[i] > kOpen;
          if (known && a[i] != b[i]) {
            complain(fmt::format("collective {} of lane {} is {} on server {} and {} on server {}",
                                 i + 1, lane, a[i], server, b[i], other_server));
          }
          const bool shared = trusted && both && i < (*one->common)[lane];
          if (shared && one->alive && other->alive && !(a[i] > kOpen && b[i] > kOpen)) {
            complain(
                fmt::format("collective {} of lane {} is said to have ended on servers {} and "
                            "{}, and has not",
                            i + 1, lane, server, other_server));
          }
        }
      }
    }
  }
}

}  // namespace gradcube::control
