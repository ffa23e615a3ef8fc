#include "dataplane/daemon/node/member.h"

#include <algorithm>
#include <array>
#include <sys/socket.h>
#include <utility>

#include "control/base/errors.h"
#include "control/base/system_error.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

SessionShape shape_of(const LanePlans& lanes, const control::JobOptions& options) {
  SessionShape shape;
  shape.ranks = options.all_trainers();
  shape.trainers = options.trainers;
  shape.reproducible = options.reproducible;
  for (const LanePlan& lane : lanes) shape.lane_threads.push_back(lane.choice->threads());
  return shape;
}

// Throws JoinRefused.
JobEngines engines_for(const control::JoinRequest& request, const std::string& server,
                       const LanePlans& plans, std::uint64_t region_bytes,
                       const NodeEngines& engines) {
  try {
    return JobEngines(request.name, server, plans, region_bytes, engines);
  } catch (const control::SetupError& error) {
    throw JoinRefused(GRADCUBE_EINVAL, error.what());
  }
}

// The daemon's end, and in `trainer` the other.
control::Descriptor make_doorbell(control::Descriptor& trainer) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    throw control::system_error("cannot make a session's doorbell");
  }
  trainer = control::Descriptor(ends[1]);
  return control::Descriptor(ends[0]);
}

// The doorbell, the daemon's end, is the session's from where there is one.
std::unique_ptr<Session> make_session(std::shared_ptr<SessionRegion> region,
                                      control::Descriptor doorbell, const SessionShape& shape,
                                      const NodeEngines& engines, unsigned local) {
  const auto bells = JobEngines::bells_of(engines);
  auto session = std::make_unique<Session>(std::move(region), doorbell.get(), shape,
                                           bells.listeners, bells.leader, local);
  doorbell.release();
  return session;
}

}  // namespace

Member::Member(const control::JoinRequest& request, const std::string& server,
               std::shared_ptr<SessionRegion> region, LanePlans plans, const NodeEngines& engines,
               unsigned local)
    : request_(request),
      plans_(std::move(plans)),
      locals_(request.options.trainers),
      session_(make_session(
          std::move(region),
          make_doorbell(
              locals_[local].emplace(Local{request_.trainer, control::Descriptor()}).doorbell),
          shape_of(plans_, request_.options), engines, local)),
      engines_(engines_for(request_, server, plans_, session_->region(local).bytes(), engines)),
      hub_(engines_, *session_) {}

void Member::add(unsigned local, control::TrainerInfo trainer,
                 std::shared_ptr<SessionRegion> region) {
  try {
    for (const EngineAt& at : engines_.engines().all()) {
      at.engine->check(plans_, region->bytes());
    }
  } catch (const control::SetupError& error) {
    throw JoinRefused(GRADCUBE_EINVAL, error.what());
  }
  Local added{trainer, control::Descriptor()};
  control::Descriptor doorbell = make_doorbell(added.doorbell);
  session_->add(local, std::move(region), doorbell.get());
  doorbell.release();
  locals_[local] = std::move(added);
}

std::optional<unsigned> Member::free_place() const {
  for (unsigned local = 0; local < trainers(); ++local) {
    if (!has(local)) return local;
  }
  return std::nullopt;
}

bool Member::any_stays() const {
  return std::ranges::any_of(locals_,
                             [](const auto& each) { return each.has_value() && !each->gone; });
}

void Member::leave(unsigned local, std::optional<Farewell> farewell) {
  locals_[local]->gone = true;
  locals_[local]->farewell = std::move(farewell);
  hub_.leave(local);
}

void Member::admit(unsigned rank, unsigned size) { place_ = {rank, size}; }

std::vector<unsigned> Member::untold() const {
  std::vector<unsigned> untold;
  for (unsigned local = 0; local < trainers(); ++local) {
    if (stays(local) && locals_[local]->doorbell.get() >= 0) untold.push_back(local);
  }
  return untold;
}

JoinedSession Member::tell(unsigned local) {
  const SessionRegion& region = session_->region(local);
  return {place_->rank * trainers() + local, place_->size * trainers(), region.descriptor(),
          region.bytes(), locals_[local]->doorbell.release()};
}

void Member::reset(control::Epoch epoch, const control::JobCut& cut, std::uint32_t notice) {
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    cuts_[lane].add({cut.failed[lane], cut.code, notice});
  }
  hub_.end(cut.code, cut.text, notice);
  engines_.reset(cuts_, epoch);
}

bool Member::take_last(unsigned local) {
  bool taken = !attached();  // without engines
  engines_.on_leader([&](const JobEngines::Part& part) {
    taken = part.at.engine->take_last(engines_.job(), local);
  });
  return taken;
}

void Member::note(const control::Departure& departure) {
  engines_.on_leader([&](const JobEngines::Part& part) {
    part.at.engine->depart(engines_.job(), departure.server, departure.local);
  });
}

std::map<MailPeer, std::uint32_t> Member::deserters(std::size_t most) const {
  std::map<MailPeer, std::uint32_t> peers;
  if (!session_->any_deserters()) return peers;
  engines_.on_leader(
      [&](const JobEngines::Part& part) { peers = part.job->mailroom()->deserters(most); });
  return peers;
}

void Member::end_deserted(const MailPeer& peer, std::uint32_t notice) {
  engines_.on_leader(
      [&](const JobEngines::Part& part) { part.job->mailroom()->end_deserted(peer, notice); });
}

std::string Member::why_pushed(std::uint64_t key) const {
  return hub_.why_pushed(key, request_.name,
                         [this](unsigned local) { return locals_[local]->info.pid; });
}

LaneCounts Member::submitted() const {
  LaneCounts counts;
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    // The completed ones first: they never exceed what is read as published after them.
    counts.completed.push_back(session_->completed(lane));
    counts.published.push_back(session_->published(lane));
  }
  return counts;
}

LaneCounts Member::submitted(unsigned local) const {
  LaneCounts counts;
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    counts.completed.push_back(session_->ended(lane, local));
    counts.published.push_back(session_->submitted(lane, local));
  }
  return counts;
}

control::LaneNumbers Member::reached() const {
  control::LaneNumbers most;
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    most.push_back(cuts_[lane].through());
    for (unsigned local = 0; local < trainers(); ++local) {
      if (has(local)) most[lane] = std::max(most[lane], session_->submitted(lane, local));
    }
  }
  return most;
}

unsigned Member::latest() const {
  unsigned latest = 0;
  std::uint64_t least = UINT64_MAX;
  for (unsigned local = 0; local < trainers(); ++local) {
    if (!has(local)) return local;
    std::uint64_t all = 0;
    for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
      all += session_->submitted(lane, local);
    }
    if (all < least) latest = local;
    least = std::min(least, all);
  }
  return latest;
}

LaneCounts Member::counts() const {
  LaneCounts counts = submitted();
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    counts.published[lane] = std::max(counts.published[lane], cuts_[lane].through());
    counts.completed[lane] = std::max(counts.completed[lane], cuts_[lane].through());
  }
  return counts;
}

bool Member::anything_outstanding() const {
  if (session_->anything_shared_in_flight()) return true;
  // What is not taken yet can be seen only where no engine takes.
  return !attached() && session_->has_submission();
}

std::optional<CollectiveRequest> Member::submitted_as(control::CollectiveName collective,
                                                      unsigned local) const {
  if (collective.lane >= session_->lanes() || !has(local)) return std::nullopt;
  const CollectiveRequest& request = session_->request(collective.lane, collective.number, local);
  if (request.number != collective.number) return std::nullopt;
  return request;
}

const char* Member::take_submissions() {
  // What ends as it is taken makes room for more: a trainer could go on for ever.
  std::uint32_t taken = 0;
  while (taken < shared::kRingEntries && session_->take() == Session::Take::taken) ++taken;
  return session_->violation();
}

const char* Member::fail_submissions() {
  for (unsigned local = 0; local < trainers(); ++local) {
    if (has(local) && !stays(local)) session_->dismiss(local);
  }
  take_submissions();
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    // A collective that a reset has failed keeps its reason.
    session_->complete_through(lane, cuts_[lane]);
    session_->complete_through(lane, UINT64_MAX, GRADCUBE_EPEER, end_notice_.value_or(0));
  }
  session_->fail_mail(GRADCUBE_EPEER, end_notice_.value_or(0));
  hub_.end(GRADCUBE_EPEER, "the job has ended", end_notice_.value_or(0));
  session_->end_hub(GRADCUBE_EPEER, end_notice_.value_or(0));
  return session_->violation();
}

void Member::release(DepartedSessions& departed) {
  departed.add(std::move(session_), engines_.release(), hub_.take_dropped());
}

}  // namespace gradcube::dataplane
