#include "dataplane/daemon/node/node.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <utility>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/daemon/trainers/session_messages.h"
#include "dataplane/fabric/emulated/random.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// Job ids of different servers, and of different incarnations of one, differ from the start.
std::uint32_t id_seed(bcube::ServerId server, control::Incarnation incarnation) {
  SeededRandom random(incarnation);
  return static_cast<std::uint32_t>(random.next()) + server * 0x01000193;
}

JobState state_of(const control::JobAgent* agent, const Member& member) {
  using Phase = control::JobAgent::Phase;
  if (member.ended() || agent == nullptr || agent->is_ending()) return JobState::aborted;
  if (agent->stopping()) return JobState::stopping;
  return agent->phase() == Phase::joining ? JobState::gathering : JobState::running;
}

}  // namespace

Node::Node(bcube::ServerId server, control::Incarnation incarnation, NodeSurroundings& around,
           std::unique_ptr<NodeEngines> engines)
    : server_(server),
      incarnation_(incarnation),
      around_(around),
      engines_(std::move(engines)),
      introductions_(server, around.secret + incarnation + server,
                     around.frames.keys == nullptr ? control::Introductions::First::believed
                                                   : control::Introductions::First::challenged),
      jobs_(server, incarnation, space(), around.timing.jobs, id_seed(server, incarnation)),
      greetings_(server, incarnation, around.timing.greetings),
      aggregated_(server, around, *engines_) {
  jobs_.set_jobs_per_user(around.jobs_per_user, around.share);
  if (around.frames.pool == nullptr) return;
  courier_ =
      std::make_unique<MessageCourier>(*engines_, incarnation, introductions_, around.frames);
}

Node::~Node() {
  for (auto& [attempt, group] : groups_) {
    if (group.member->attached()) group.member->detach();
    group.member->release(around_.departed);
  }
}

void Node::inquire(TrainerId trainer, std::uint64_t request, control::CollectiveName collective,
                   control::Instant now) {
  JobGroup* group = find(trainer.attempt);
  if (group == nullptr || !group->member->stays(trainer.local)) return;
  if (collective.lane == shared::kHubLane) {
    std::string why = group->member->why_pushed(collective.number);
    notify(*group, trainer.local, make_report(request, why));
    group->last_report = std::move(why);
  } else if (collective.lane >= group->member->session().lanes()) {
    notify(*group, trainer.local, make_report(request, "the job has no such lane"));
  } else if (jobs_.agent(trainer.attempt) == nullptr || group->member->ended()) {
    notify(*group, trainer.local, make_report(request, "the job has ended"));
  } else {
    group->asking[trainer.local] = {request, collective};
    happened(*group, control::event::Asked{request, collective}, now);
  }
}

void Node::on_event(const EngineEvent& event, control::Instant now) {
  JobGroup* const group = running_group(event.job);
  if (group == nullptr) {
    control::NodeMessages out;
    aggregated_.on_event(event, out);
    return send_all(out, now);
  }
  if (!group->descriptor.has_value()) return;
  if (event.kind == EngineEvent::Kind::violation) {
    // In every epoch: a session that has violated the protocol once is closed.
    const unsigned local = group->member->violator();
    if (group->member->stays(local)) evict(*group, local, group->member->violation(), now);
    return;
  }
  if (event.epoch != static_cast<std::uint16_t>(group->epoch)) return;
  if (event.kind == EngineEvent::Kind::hub_disagreement) {
    const std::string* key = group->member->hub().key(event.hub_key);
    if (key == nullptr) return;
    // Nobody can say which of them is wrong, and the round of the key would never end.
    const std::string why =
        hub_disagreement(group->member->request().name, *key, space().text(server_));
    return happened(*group, control::event::TrainerAborted{why, true}, now);
  }
  if (event.kind == EngineEvent::Kind::progress) return tell_counts(*group, now);
  const LanePlans& plans = group->member->plans();
  control::event::Disagreed disagreed{group->epoch, {}};
  if (event.kind == EngineEvent::Kind::overflow) {
    disagreed.what = {event.overflow.lane, event.overflow.collective, GRADCUBE_EOVERFLOW,
                      describe_overflow(*group->descriptor, event, plans, space()),
                      control::Disagreement::Cause::overflow};
  } else {
    disagreed.what = {event.disagreement.lane, event.disagreement.collective, GRADCUBE_EMISMATCH,
                      describe_place(event, plans, space()),
                      control::Disagreement::Cause::signatures};
  }
  happened(*group, disagreed, now);
}

void Node::greet_on_time(control::Instant now) {
  if (const auto due = greetings_.deadline(); due.has_value() && *due <= now) greet(now);
}

void Node::on_time(control::Instant now) {
  if (const auto due = jobs_.deadline(); due.has_value() && *due <= now) {
    jobs_.on_time(now, actions_);
    stirred_ = true;
  }
}

std::optional<control::Instant> Node::deadline() const {
  return control::earlier(greetings_.deadline(), jobs_.deadline());
}

bool Node::work(control::Instant now, const MayGoOn& may_go_on) {
  if (!std::exchange(stirred_, false) && !any_actions()) return false;
  try {
    admit_untold();
    if (!carry_out_all(now, may_go_on)) return true;
    forget_the_gone(now);
    set_peers(now);
  } catch (...) {
    stirred_ = true;  // the next call goes on
    throw;
  }
  return true;
}

// Whether nothing is left to be carried out.
bool Node::carry_out_all(control::Instant now, const MayGoOn& may_go_on) {
  while (any_actions()) {
    if (carried_out_ == in_work_.size()) {
      in_work_.clear();
      carried_out_ = 0;
      in_work_.swap(actions_);
    }
    if (!may_go_on()) return false;
    // What is carried out may add more.
    try_to_carry_out(in_work_[carried_out_], now);
    ++carried_out_;
  }
  return true;
}

// What cannot be carried out costs its job, by the deadlines of the other members, and nothing
// else. What there is no memory for is tried again.
void Node::try_to_carry_out(const control::JobAction& action, control::Instant now) {
  try {
    carry_out(action, now);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    record(fmt::format("server {}: {}", space().text(server_), error.what()));
  }
}

void Node::look(control::Instant now) {
  give_back_packets();
  struct Violator {
    JobGroup& group;
    unsigned local;
    std::string violation;
  };
  std::vector<Violator> violators;
  for (auto& [attempt, group] : groups_) {
    Member& member = *group.member;
    tell_of_the_gone(group, now);
    bool faulted = false;
    for (unsigned local = 0; local < member.trainers(); ++local) {
      // While it is attached, others may wait for what runs on its memory, even if it has gone.
      const bool matters = member.stays(local) || (member.has(local) && member.attached());
      if (!matters || !member.session().region(local).faulted()) continue;
      // Now, as the next look settles the fault, and what ends the job may wait for its turn, or
      // for memory.
      if (member.attached()) halt_for_good(group);
      violators.push_back({group, local, kMemoryFault});
      faulted = true;
    }
    if (faulted) continue;
    settle_leaving(group, now);
    if (group.gone) continue;
    miss_the_gone(group, now);
    note_progress(group);
    if (member.attached() || !member.admitted()) continue;
    const char* violation = member.ended() ? member.fail_submissions() : member.take_submissions();
    if (violation != nullptr) violators.push_back({group, member.violator(), violation});
  }
  control::NodeMessages out;
  for (const std::string& line : aggregated_.look(now, out)) record(line);
  send_all(out, now);
  for (const auto& [group, local, violation] : violators) evict(group, local, violation, now);
  // What this has asked for may be a command to them.
  if (!any_actions()) forget_the_gone(now);
}

// When a collective has ended, what links lost before that explains nothing any more.
void Node::note_progress(JobGroup& group) {
  const Member& member = *group.member;
  control::LaneNumbers completed = member.submitted().completed;
  if (completed != group.progress) {
    group.progress = std::move(completed);
    group.last_report.clear();
    group.since.clear();
  } else if (group.since.empty() && member.session().anything_in_flight()) {
    for (const bcube::ServerId server : member.request().options.members) {
      if (bcube::are_neighbours(space(), server_, server)) {
        group.since[server] = neighbour(server);
      }
    }
  }
}

void Node::evict(const JobGroup& group, unsigned local, const std::string& violation,
                 control::Instant now) {
  if (!group.member->stays(local)) {
    return happened(group, control::event::TrainerAborted{violation, !group.gone}, now);
  }
  const TrainerId trainer{server_, group.attempt, local};
  const std::string closed = fmt::format("this session was closed: {}", violation);
  std::string reason = fmt::format("was evicted by its daemon: {}", violation);
  if (around_.channel != nullptr) around_.channel->evict(trainer, GRADCUBE_EPROTOCOL, closed);
  leave(trainer, Departure::violation, std::move(reason), now);
}

// Trainers have gone for good when no command about them can come any more.
void Node::forget_the_gone(control::Instant now) {
  std::erase_if(groups_, [&](auto& entry) {
    auto& [attempt, group] = entry;
    const control::JobAgent* agent = jobs_.agent(attempt);
    const bool over = agent == nullptr || agent->is_ending();
    if (!group.gone || !over || group.member->attached()) return false;
    end_calls(group, now);
    group.member->hub().forget();
    group.member->release(around_.departed);
    return true;
  });
}

Node::JobGroup* Node::find(Attempt attempt) {
  const auto found = groups_.find(attempt);
  return found == groups_.end() ? nullptr : &found->second;
}

// The one that the engines know under this id.
Node::JobGroup* Node::running_group(protocol::JobId job) {
  for (auto& [attempt, group] : groups_) {
    if (group.job == job && group.member->attached()) return &group;
  }
  return nullptr;
}

void Node::notify(const JobGroup& group, const shared::Notice& notice) {
  for (unsigned local = 0; local < group.member->trainers(); ++local) notify(group, local, notice);
}

void Node::notify(const JobGroup& group, unsigned local, const shared::Notice& notice) {
  if (around_.channel == nullptr || !group.member->stays(local)) return;
  around_.channel->notify({server_, group.attempt, local}, notice);
}

void Node::record_abort(const JobGroup& group, const std::string& why) {
  if (!around_.logged.insert(group.job).second) return;
  record(fmt::format("job \"{}\" is aborted: {}", group.member->request().name, why));
}

void Node::record(const std::string& line) {
  if (around_.channel != nullptr) around_.channel->record(line);
}

bool Node::knows(protocol::JobId job) const {
  return aggregated_.knows(job) ||
         std::ranges::any_of(groups_, [job](const auto& entry) { return entry.second.job == job; });
}

std::vector<MemberFacts> Node::facts() const {
  std::vector<MemberFacts> facts;
  for (const auto& [attempt, group] : groups_) {
    if (group.gone) continue;
    const Member& member = *group.member;
    const control::JobAgent* agent = jobs_.agent(attempt);
    JobHead job{.name = member.request().name,
                .owner = member.request().owner,
                .id = group.job,
                .epoch = group.epoch,
                .state = state_of(agent, member),
                .why = group.why_ended,
                .options = member.request().options,
                .window = member.window(),
                .reserved_bytes = member.reserved_bytes(),
                .key = group.descriptor.has_value() ? group.descriptor->transport.key : 0};
    if (job.why.empty() && agent != nullptr && job.state >= JobState::stopping) {
      job.why = agent->why();
    }
    for (unsigned local = 0; local < member.trainers(); ++local) {
      if (!member.stays(local)) continue;
      const JobFacts::Trainer trainer{
          server_,
          static_cast<std::uint32_t>(member.trainer(local).pid),
          member.submitted(local),
          member.trainer(local).uid,
          member.session().region(local).confirmed() - shared::kHeapOffset,
          local,
          member.session().mail_counts(local)};
      facts.push_back({job, trainer});
      job.reserved_bytes = 0;  // it counts once
    }
  }
  return facts;
}

unsigned Node::trainers() const {
  unsigned trainers = 0;
  for (const auto& [attempt, group] : groups_) {
    for (unsigned local = 0; local < group.member->trainers(); ++local) {
      if (group.member->stays(local)) ++trainers;
    }
  }
  return trainers;
}

std::uint64_t Node::trainer_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [attempt, group] : groups_) {
    bytes += group.member->session().resident_bytes();
  }
  return bytes;
}

std::uint8_t* Node::region_base(TrainerId trainer) const {
  return groups_.at(trainer.attempt).member->session().region(trainer.local).base();
}

}  // namespace gradcube::dataplane
