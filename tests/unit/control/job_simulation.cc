// The script of a simulated cluster.
#include "tests/unit/control/job_simulation.h"

#include <algorithm>
#include <fmt/format.h>

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

constexpr Instant kDaemonTick = milliseconds(20);
constexpr Instant kLongest = std::chrono::seconds(60);
// So many in the time of silence that chance alone makes no server silent.
constexpr GreetingTiming kGreetings{milliseconds(40), milliseconds(600)};
// An inquiry's time, the next tick, and what the engines are busy with.
constexpr Instant kReportTime = milliseconds(400);

}  // namespace

JobSimulation::JobSimulation(std::uint64_t seed, SimulationOptions options)
    : random_(seed),
      options_(options),
      space_(std::vector<unsigned>{2 + static_cast<unsigned>(random_() % 4)}),
      collectives_(3 + any(12)) {
  timing_.phase = milliseconds(1000);
  timing_.run_on = milliseconds(2000);
  timing_.run_on_after_death = milliseconds(800);
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
  if (options_.rejoins) plan_rejoins();
}

void JobSimulation::plan_faults() {
  for (unsigned i = options_.disagreements ? any(4) : 0; i > 0; --i) {
    const unsigned lane = any(static_cast<unsigned>(job_options_.lanes.size()));
    auto& kind = chance(0.3) ? overflows_ : odd_;
    kind[{lane, 1 + any(collectives_)}] = any(space_.servers());
  }
  for (unsigned i = options_.departures ? 1 + any(3) : 0; i > 0; --i) {
    at(milliseconds(any(1200)), [this, server = any(space_.servers())] { leave(server, 0); });
  }
  for (unsigned i = options_.trainer_faults ? 1 + any(2) : 0; i > 0; --i) {
    const ServerId server = any(space_.servers());
    const unsigned how = any(3);
    at(milliseconds(any(1200)), [this, server, how] {
      leave(server, how);
      if (chance(0.3)) at(now_ + milliseconds(any(500)), [this, server] { join(server); });
    });
  }
}

// 0: in good order, 1: by death, 2: with an abort.
void JobSimulation::leave(ServerId server, unsigned how) {
  Node& node = nodes_[server];
  if (node.control == nullptr || node.trainers.empty()) return;
  auto& [attempt, trainer] = *node.trainers.rbegin();
  if (!trainer.alive || trainer.ended || trainer.leaves) return;
  trainer.alive = false;
  const std::string who = fmt::format("the trainer on server {} ", server);
  if (how == 0) leave_in_order(server, attempt, trainer);
  if (how == 1) event(server, attempt, event::TrainerLeft{who + "died", true});
  if (how == 2) event(server, attempt, event::TrainerAborted{who + "aborted"});
}

// What it has submitted is known when its job runs. Until then its daemon comes back to it.
void JobSimulation::leave_in_order(ServerId server, Attempt attempt, Trainer& trainer) {
  const JobAgent* agent = nodes_[server].control->agent(attempt);
  const bool over = agent == nullptr || agent->is_ending();
  const bool runs = !over && agent->phase() == JobAgent::Phase::running;
  if (!over && agent->phase() == JobAgent::Phase::joining) trainer.left_early = true;
  const bool again = std::exchange(trainer.leaving, !over && !runs);
  if (over || (again && !runs)) return;
  event::TrainerLeft left{fmt::format("the trainer on server {} left", server), false};
  left.settled = runs;
  if (runs) {
    trainer.left_with.emplace();
    for (const auto& lane : trainer.submitted) trainer.left_with->push_back(lane.size());
    left.submitted = trainer.left_with;
  }
  event(server, attempt, left);
}

// When all have joined. Each joins again at once, while the old job may still run on. Some daemons
// are restarted, but not the leader's: that would end the new job too.
void JobSimulation::plan_rejoins() {
  const Instant begin = milliseconds(800 + any(1000));
  for (ServerId server = 0; server < space_.servers(); ++server) {
    const unsigned how = any(3);
    const Instant pause = milliseconds(chance(0.5) ? 0 : any(50));
    if (server > 0 && chance(0.3)) {
      at(begin, [this, server] { kill(server); });
      at(begin + pause, [this, server] {
        boot(server);
        join(server);
      });
      continue;
    }
    at(begin + milliseconds(any(100)), [this, server, how, pause] {
      leave(server, how);
      at(now_ + pause, [this, server] { join(server); });
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
    switch (any(7)) {
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
        stop_for_a_while(server, begin, end);
        break;
      case 3: {
        const std::uint64_t side = 1 + any((1U << space_.servers()) - 2);
        at(begin, [this, side, both_ways = chance(0.5)] { break_links(side, both_ways); });
        break;
      }
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

void JobSimulation::stop_for_a_while(ServerId server, Instant begin, Instant end) {
  stopped_.insert(server);
  at(begin, [this, server] { nodes_[server].stopped = true; });
  at(end, [this, server] {
    Node& node = nodes_[server];
    for (auto& [attempt, trainer] : node.trainers) {
      if (trainer.inquiring_since.has_value()) trainer.inquiring_since = now_;
    }
    // What follows from what it has missed comes after all of that.
    for (; !node.missed.empty(); node.missed.pop_front()) node.missed.front()(node);
    node.stopped = false;
  });
}

// From one side to the other, for good. `side`: a bit per server.
void JobSimulation::break_links(std::uint64_t side, bool both_ways) {
  const auto is_in = [&](ServerId server) { return ((side >> server) & 1) != 0; };
  for (ServerId from = 0; from < space_.servers(); ++from) {
    for (ServerId to = 0; to < space_.servers(); ++to) {
      const bool breaks = (is_in(from) && !is_in(to)) || (both_ways && is_in(to) && !is_in(from));
      if (!breaks) continue;
      broken_.push_back(
          {from, to, {{from, nodes_[from].incarnation}, {to, nodes_[to].incarnation}}});
    }
  }
}

void JobSimulation::boot(ServerId server) {
  Node& node = nodes_[server];
  if (node.control != nullptr) return;
  ++node.boots;
  node.incarnation = random_() | 1;
  const auto seed = static_cast<std::uint32_t>(server * 1000 + node.boots * 77);
  node.control = std::make_unique<JobNode>(server, node.incarnation, space_, timing_, seed);
  node.introductions = std::make_unique<Introductions>(server, random_());
  node.greetings = std::make_unique<Greetings>(server, node.incarnation, kGreetings);
  node.silent.clear();
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
  leave_in_order(server, attempt, trainer);
}

void JobSimulation::inquire(ServerId server, Attempt attempt, Trainer& trainer) {
  if (!trainer.alive || trainer.leaves) trainer.inquiring_since.reset();
  if (trainer.inquiring_since.has_value() && now_ > *trainer.inquiring_since + kReportTime) {
    complain(fmt::format("an inquiry of server {} is not answered", server));
    trainer.inquiring_since.reset();
  }
  if (!trainer.alive || trainer.leaves || !chance(0.02)) return;
  trainer.inquiring_since = now_;
  const unsigned lane = any(static_cast<unsigned>(job_options_.lanes.size()));
  event(server, attempt, event::Asked{++trainer.inquiry, {lane, 1 + any(collectives_)}});
}

// All greet and watch all.
void JobSimulation::greet(ServerId server) {
  Node& node = nodes_[server];
  Greetings::Servers others;
  for (ServerId other = 0; other < space_.servers(); ++other) {
    if (other != server) others.push_back(other);
  }
  node.greetings->set_peers(others, others, now_);
  std::vector<NodeMessage> messages;
  Greetings::Servers silent;
  if (node.greetings->deadline().value_or(kLongest) <= now_) {
    node.greetings->on_time(now_, messages, silent);
  }
  for (const NodeMessage& greeting : messages) {
    tell(greeting, [this, greeting](Node& there) {
      there.greetings->on_greeting(greeting.from, std::get<Greeting>(greeting.body), now_);
    });
  }
  JobActions out;
  for (const ServerId other : silent) {
    node.silent.insert(other);
    for (const auto& [attempt, agent] : node.control->agents()) {
      node.trainers[attempt].gone.insert(other);
    }
    node.control->on_server_silent(other, false, now_, out);
  }
  perform(server, std::move(out));
}

// What a daemon does from time to time.
void JobSimulation::tick(ServerId server) {
  Node& node = nodes_[server];
  const Incarnation incarnation = node.incarnation;
  if (node.control == nullptr) return;
  at(now_ + kDaemonTick, [this, server, incarnation] {
    on_node(server, incarnation, [this, server](Node&) { tick(server); });
  });
  for (auto& [attempt, trainer] : node.trainers) {
    if (trainer.leaving) leave_in_order(server, attempt, trainer);
    live(node, attempt, trainer);
    inquire(server, attempt, trainer);
  }
  for (auto& [attempt, engine] : node.engines) {
    take(node, attempt, engine);
    contribute(server, engine);
    advance(node, server, attempt, engine);
    miss_the_gone(node, server, attempt, engine);
  }
  greet(server);
  JobActions out;
  if (node.control->deadline().value_or(kLongest) <= now_) node.control->on_time(now_, out);
  perform(server, std::move(out));
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

}  // namespace gradcube::control
