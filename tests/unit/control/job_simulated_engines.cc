// The engines of a simulated cluster. An engine tells all other members what it has taken of its
// trainer, again and again, and completes a collective when it has heard the same of all. So one
// may complete while another still lacks a contribution, as with real segments.
#include <algorithm>
#include <fmt/format.h>

#include "tests/unit/control/job_simulation.h"

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

}  // namespace

void JobSimulation::perform(ServerId server, JobActions actions) {
  for (JobAction& action : actions) {
    if (auto* message = std::get_if<JobMessage>(&action)) {
      const JobMessage sent = *message;
      const auto* abort = std::get_if<Abort>(&sent.body);
      if (abort != nullptr && sent.from.attempt != 0) {
        // The agent may have given others up and be over since.
        nodes_[server].trainers[sent.from.attempt].gone.insert(abort->gone.begin(),
                                                               abort->gone.end());
      }
      tell({server, sent.to.server, sent}, [this, sent](Node& there) {
        JobActions out;
        note_given_up(there, sent);
        there.greetings->on_sign_of_life(sent.from.server, now_);
        there.control->on_message(sent, now_, out);
        perform(sent.to.server, std::move(out));
      });
    } else if (const auto* told = std::get_if<ToTrainer>(&action)) {
      notify(nodes_[server], *told);
    } else {
      order(server, std::get<ToEngines>(action));
    }
  }
  note_gone(nodes_[server]);
}

void JobSimulation::note_gone(Node& node) {
  for (const auto& [attempt, agent] : node.control->agents()) {
    const auto& gone = agent.exchange().gone();
    if (agent.is_ending()) node.trainers[attempt].gone.insert(gone.begin(), gone.end());
  }
}

// An agent that learns that it was given up may be over at once.
void JobSimulation::note_given_up(Node& node, const JobMessage& message) {
  const auto* abort = std::get_if<Abort>(&message.body);
  const auto trainer = node.trainers.find(message.to.attempt);
  if (abort == nullptr || trainer == node.trainers.end()) return;
  const auto& gone = abort->gone;
  if (message.from.attempt == 0 || message.to.incarnation != node.incarnation) return;
  if (std::find(gone.begin(), gone.end(), message.to.server) == gone.end()) return;
  trainer->second.gone.insert(message.from.server);
}

void JobSimulation::notify(Node& node, const ToTrainer& told) {
  const auto found = node.trainers.find(told.attempt);
  if (found == node.trainers.end()) {
    // A Refused that came at once: the trainer is noted with the next one.
    Trainer& trainer = node.trainers[told.attempt];
    trainer.submitted.resize(job_options_.lanes.size());
    trainer.outcomes.resize(job_options_.lanes.size());
  }
  Trainer& trainer = node.trainers[told.attempt];
  if (const auto* joined = std::get_if<notice::Joined>(&told.notice)) {
    if (trainer.job != protocol::kNoJob) complain("a trainer is told twice that it has joined");
    trainer.job = joined->job;
  }
  if (const auto* report = std::get_if<notice::Report>(&told.notice)) take_report(trainer, *report);
  if (std::holds_alternative<notice::Refused>(told.notice)) trainer.ended = true;
  if (const auto* failed = std::get_if<notice::Failed>(&told.notice)) {
    read_failure(trainer, failed->cut);
  }
  if (const auto* ended = std::get_if<notice::Ended>(&told.notice)) {
    trainer.ended = true;
    trainer.common = ended->common;
    ++ends_;
    if (trainer.was_set_up && !ended->common.has_value()) ++common_unknown_;
    end_outcomes(trainer);
  }
}

void JobSimulation::take_report(Trainer& trainer, const notice::Report& report) {
  ++reports_;
  if (report.inquiry != trainer.inquiry) return;
  const bool waits = trainer.inquiring_since.has_value() || !trainer.alive || trainer.leaves;
  if (!waits) complain("an inquiry is answered twice");
  trainer.inquiring_since.reset();
  if (report.missing.empty() && report.members.size() != space_.servers()) {
    complain("a report does not name all members");
  }
  for (const MemberStanding& member : report.members) {
    const std::size_t lanes = job_options_.lanes.size();
    if (member.published.size() != lanes || member.completed.size() != lanes) {
      complain("a report does not name all lanes");
    }
    if (!options_.message_faults && !options_.node_faults && !member.answered) {
      complain(fmt::format("a report misses the answer of server {}", member.server));
    }
  }
}

// All read the same. A disagreement names both kinds: the collective was met on two servers.
void JobSimulation::read_failure(Trainer& trainer, const JobCut& cut) {
  trainer.cuts.push_back(cut);
  const auto [known, fresh] = texts_.try_emplace({trainer.job, cut.failed}, cut.text);
  if (!fresh && known->second != cut.text) complain("trainers read different texts");
  const bool tells = cut.text.find("submitted kind 1") != std::string::npos &&
                     cut.text.find("submitted kind 2") != std::string::npos;
  if (cut.code == kMismatch && !tells) complain("who disagrees is not told: " + cut.text);
}

event::EnginesHeld JobSimulation::held(const Trainer& trainer, const Engine& engine) {
  event::EnginesHeld held{engine.published, engine.completed, engine.asked, ""};
  for (const auto& [from, lanes] : engine.heard) {
    for (const auto& collectives : lanes) held.segments += collectives.size();
  }
  if (!engine.asked.has_value()) return held;
  const auto [lane, number] = *engine.asked;
  held.submitted = engine.published[lane] < number
                       ? "nothing yet"
                       : fmt::format("kind {}", trainer.submitted[lane][number - 1]);
  return held;
}

// Why a collective has failed: the first reset that reached it, or the end of the job.
int JobSimulation::code_of(const Trainer& trainer, std::size_t lane, std::uint64_t index) {
  for (const JobCut& cut : trainer.cuts) {
    if (index < cut.failed[lane]) return cut.code;
  }
  return kPeer;
}

void JobSimulation::end_outcomes(Trainer& trainer) const {
  for (std::size_t lane = 0; lane < trainer.outcomes.size(); ++lane) {
    auto& outcomes = trainer.outcomes[lane];
    for (std::size_t c = 0; c < outcomes.size(); ++c) {
      if (outcomes[c] != kOpen) continue;
      outcomes[c] = code_of(trainer, lane, c);
    }
  }
}

// In order, each a while after the one before.
void JobSimulation::order(ServerId server, const ToEngines& order) {
  Node& node = nodes_[server];
  if (const auto* prepare = std::get_if<command::Prepare>(&order.command)) {
    Engine& engine = node.engines[order.attempt];
    engine.job = prepare->job;
    engine.epoch = UINT32_MAX;  // not attached yet
    engine.state = State::halted;
  }
  const auto found = node.engines.find(order.attempt);
  if (found == node.engines.end()) {
    if (!std::holds_alternative<command::Count>(order.command)) return;
    at(now_, [this, server, order] { event(server, order.attempt, event::Counted{}); });
    return;
  }
  Instant& busy = found->second.busy_until;
  busy = std::max(busy, now_) + milliseconds(any(8));
  at(busy, [this, server, order, incarnation = node.incarnation] {
    on_node(server, incarnation,
            [this, server, order](Node& there) { carry_out(there, server, order); });
  });
}

void JobSimulation::carry_out(Node& node, ServerId server, const ToEngines& order) {
  const auto found = node.engines.find(order.attempt);
  if (found == node.engines.end()) return;
  Engine& engine = found->second;
  if (const auto* prepare = std::get_if<command::Prepare>(&order.command)) {
    const LaneNumbers none(prepare->job.options.lanes.size(), 0);
    node.trainers[order.attempt].was_set_up = true;
    engine.published = engine.completed = engine.failed = none;
    engine.epoch = prepare->job.epoch;
    engine.state = State::armed;
    event(server, order.attempt, event::EnginesArmed{});
  } else if (std::holds_alternative<command::Start>(order.command)) {
    engine.state = State::sending;
  } else if (const auto* hold = std::get_if<command::Hold>(&order.command)) {
    engine.state = State::holding;
    engine.asked = hold->asked;
    event(server, order.attempt, held(node.trainers[order.attempt], engine));
  } else if (std::holds_alternative<command::Count>(order.command)) {
    event(server, order.attempt, event::Counted{0, 0, engine.published, engine.completed});
  } else if (std::holds_alternative<command::Halt>(order.command)) {
    engine.state = State::halted;
    const LaneNumbers none(engine.job.options.lanes.size(), 0);
    event(server, order.attempt,
          event::EnginesHalted{engine.completed.empty() ? none : engine.completed});
  } else if (const auto* reset = std::get_if<command::Reset>(&order.command)) {
    ++resets_;
    Trainer& trainer = node.trainers[order.attempt];
    for (std::size_t lane = 0; lane < engine.completed.size(); ++lane) {
      auto& outcomes = trainer.outcomes[lane];
      for (std::uint64_t c = engine.completed[lane]; c < reset->cut.failed[lane]; ++c) {
        if (c < outcomes.size()) outcomes[c] = reset->cut.code;
      }
    }
    engine.published = engine.completed = engine.failed = reset->cut.failed;
    engine.heard.clear();
    engine.asked.reset();
    engine.epoch = reset->epoch;
    engine.state = State::armed;
    event(server, order.attempt, event::EnginesArmed{});
  } else if (const auto* note = std::get_if<command::Note>(&order.command)) {
    engine.departures.note(note->departure);
  } else {
    node.engines.erase(found);
  }
}

// Submissions that the last reset has failed already are answered, the others are taken.
void JobSimulation::take(Node& node, Attempt attempt, Engine& engine) {
  if (engine.state != State::sending) return;
  Trainer& trainer = node.trainers[attempt];
  for (std::size_t lane = 0; lane < engine.published.size(); ++lane) {
    auto& outcomes = trainer.outcomes[lane];
    for (std::size_t c = 0; c < outcomes.size() && c < engine.failed[lane]; ++c) {
      if (outcomes[c] == kOpen) outcomes[c] = code_of(trainer, lane, c);
    }
    engine.published[lane] =
        std::max<std::uint64_t>(engine.published[lane], trainer.submitted[lane].size());
  }
}

void JobSimulation::contribute(ServerId server, Engine& engine) {
  if (engine.state != State::sending && engine.state != State::holding) return;
  Node& node = nodes_[server];
  Contribution mine{engine.epoch, engine.job.id, {}};
  mine.collectives.resize(engine.published.size());
  const Trainer* trainer = nullptr;
  for (const auto& [attempt, each] : node.trainers) {
    if (each.job == engine.job.id) trainer = &each;
  }
  if (trainer == nullptr) return;
  for (std::size_t lane = 0; lane < mine.collectives.size(); ++lane) {
    for (std::uint64_t c = engine.failed[lane]; c < engine.published[lane]; ++c) {
      mine.collectives[lane][c + 1] = trainer->submitted[lane][c];
    }
  }
  engine.heard[server] = mine.collectives;
  for (const JobMember& member : engine.job.members) {
    if (member.server == server) continue;
    send(server, member.server, [this, server, member, mine](Node& there) {
      there.greetings->on_sign_of_life(server, now_);
      receive(there, member.server, server, mine);
    });
  }
}

void JobSimulation::receive(Node& node, ServerId server, ServerId from, const Contribution& what) {
  for (const auto& [attempt, agent] : node.control->agents()) {
    if (agent.job() != what.job || agent.is_ending()) continue;
    const auto engine = node.engines.find(attempt);
    const bool takes = engine != node.engines.end() && engine->second.epoch != UINT32_MAX &&
                       engine->second.epoch >= what.epoch;
    if (!takes) complain(fmt::format("server {} meets a frame of a new epoch", server));
  }
  for (auto& [attempt, engine] : node.engines) {
    if (engine.job.id != what.job || engine.epoch != what.epoch) continue;
    if (engine.state == State::halted) continue;
    auto& heard = engine.heard[from];
    heard.resize(what.collectives.size());
    for (std::size_t lane = 0; lane < heard.size(); ++lane) {
      heard[lane].insert(what.collectives[lane].begin(), what.collectives[lane].end());
    }
  }
}

void JobSimulation::advance(Node& node, ServerId server, Attempt attempt, Engine& engine) {
  if (engine.state != State::sending && engine.state != State::holding) return;
  bool grown = false;
  std::vector<Disagreement> odd;
  for (std::uint32_t lane = 0; lane < engine.published.size(); ++lane) {
    for (std::uint64_t c = engine.completed[lane] + 1; c <= engine.published[lane]; ++c) {
      std::size_t same = 0;
      bool differs = false;
      const auto own = engine.heard[server].size() > lane
                           ? engine.heard[server][lane].find(c)
                           : std::map<std::uint64_t, int>::iterator();
      if (engine.heard[server].size() <= lane || own == engine.heard[server][lane].end()) continue;
      for (const auto& [from, lanes] : engine.heard) {
        const auto theirs = lanes[lane].find(c);
        if (theirs == lanes[lane].end()) continue;
        ++same;
        differs = differs || theirs->second != own->second;
      }
      if (differs && engine.reported.insert({lane, c}).second) {
        odd.push_back({lane, c, kMismatch, fmt::format("server {}", server),
                       Disagreement::Cause::signatures});
      }
      if (differs || same < engine.job.members.size() || c != engine.completed[lane] + 1) continue;
      const auto overflow = overflows_.find({lane, c});
      if (overflow != overflows_.end() && overflow->second == server) {
        if (engine.reported.insert({lane, c}).second) {
          odd.push_back(
              {lane, c, kOverflow, "an average overflowed", Disagreement::Cause::overflow});
        }
        break;
      }
      engine.completed[lane] = c;
      node.trainers[attempt].outcomes[lane][c - 1] = kDone;
      grown = true;
    }
  }
  const bool holds = engine.state == State::holding;
  const Epoch epoch = engine.epoch;
  const event::EnginesHeld counts = held(node.trainers[attempt], engine);
  for (const Disagreement& what : odd) event(server, attempt, event::Disagreed{epoch, what});
  if (grown && holds) event(server, attempt, counts);
}

// What its trainer submits and a trainer that has left had not.
void JobSimulation::miss_the_gone(Node& node, ServerId server, Attempt attempt, Engine& engine) {
  const Trainer& trainer = node.trainers[attempt];
  const bool cares = trainer.alive && !trainer.leaves && engine.state == State::sending;
  if (!cares || !engine.departures.any()) return;
  const LaneNumbers missed = engine.departures.missed(engine.published, engine.completed,
                                                      timing_.run_on, now_, [] { return 0; });
  for (std::uint32_t lane = 0; lane < missed.size(); ++lane) {
    if (missed[lane] == 0) continue;
    const Departure& first = *engine.departures.first_in(lane);
    event(server, attempt,
          event::Disagreed{
              engine.epoch,
              {lane, missed[lane], kDeparted, first.how, Disagreement::Cause::departure}});
  }
}

void JobSimulation::event(ServerId server, Attempt attempt, JobEvent event) {
  Node& node = nodes_[server];
  on_node(server, node.incarnation, [this, server, attempt, event](Node& there) {
    JobActions out;
    there.control->on_event(attempt, event, now_, out);
    perform(server, std::move(out));
  });
}

}  // namespace gradcube::control
