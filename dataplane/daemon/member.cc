#include "dataplane/daemon/member.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"

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

// The ranks that the trainers see; members and ranks of a plan both ascend with the servers.
RankOrder rank_order(const control::JobDescriptor& job) {
  if (!job.ranks_are_wished) return {};
  std::vector<control::Rank> seen;
  for (const control::JobMember& member : job.members) seen.push_back(member.rank);
  return RankOrder(std::move(seen));
}

struct Doorbells {
  int daemon;
  int trainer;
};

Doorbells make_doorbells() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    throw control::SetupError(
        fmt::format("cannot make a session's doorbell: {}", std::strerror(errno)));
  }
  return {ends[0], ends[1]};
}

// The pollers that the session of a server's engines wakes.
struct Pollers {
  std::vector<Doorbell*> listeners;
  Doorbell* leader = nullptr;
};

Pollers pollers_of(const NodeEngines& engines) {
  Pollers pollers;
  for (const EngineAt& at : engines.all()) {
    if (at.leader) pollers.leader = &at.poller->doorbell();
    if (!at.leader) pollers.listeners.push_back(&at.poller->doorbell());
  }
  if (pollers.listeners.empty()) pollers.leader = nullptr;
  return pollers;
}

}  // namespace

Member::Member(const control::JoinRequest& request, const std::string& server,
               const NodeEngines& engines)
    : request_(request), engines_(engines) {
  std::vector<std::uint32_t> flows;
  for (const EngineAt& at : engines_.all()) flows.push_back(at.engine->check({}, 0));
  offer_ = offer_packets(request_.name, server, flows, engines_);
  window_ = offer_.window;
  const Pollers pollers = pollers_of(engines_);
  session_ = std::make_unique<Session>(pollers.listeners, pollers.leader);
}

Member::Member(const control::JoinRequest& request, const std::string& server,
               std::shared_ptr<SessionRegion> region, LanePlans plans, const NodeEngines& engines,
               unsigned local)
    : request_(request),
      plans_(std::move(plans)),
      engines_(engines),
      locals_(request.options.trainers) {
  std::vector<std::uint32_t> flows;
  try {
    for (const EngineAt& at : engines_.all()) {
      flows.push_back(at.engine->check(plans_, region->bytes()));
    }
  } catch (const control::SetupError& error) {
    throw JoinRefused(GRADCUBE_EINVAL, error.what());
  }
  offer_ = offer_packets(request_.name, server, flows, engines_);
  window_ = offer_.window;
  const Doorbells doorbells = make_doorbells();
  locals_[local] = Local{request_.trainer, doorbells.trainer};
  const Pollers pollers = pollers_of(engines_);
  session_ = std::make_unique<Session>(std::move(region), doorbells.daemon,
                                       shape_of(plans_, request_.options), pollers.listeners,
                                       pollers.leader, local);
}

Member::~Member() {
  for (const auto& each : locals_) {
    if (each.has_value() && each->doorbell >= 0) close(each->doorbell);
  }
}

void Member::add(unsigned local, control::TrainerInfo trainer,
                 std::shared_ptr<SessionRegion> region) {
  try {
    for (const EngineAt& at : engines_.all()) at.engine->check(plans_, region->bytes());
  } catch (const control::SetupError& error) {
    throw JoinRefused(GRADCUBE_EINVAL, error.what());
  }
  const Doorbells doorbells = make_doorbells();
  locals_[local] = Local{trainer, doorbells.trainer};
  session_->seat(local, std::move(region), doorbells.daemon);
}

std::optional<unsigned> Member::free_place() const {
  for (unsigned local = 0; local < trainers(); ++local) {
    if (!has(local)) return local;
  }
  return std::nullopt;
}

bool Member::any_stays() const {
  return std::any_of(locals_.begin(), locals_.end(),
                     [](const auto& each) { return each.has_value() && !each->gone; });
}

void Member::leave(unsigned local) {
  locals_[local]->gone = true;
  forget_unread_hub();
}

void Member::admit(unsigned rank, unsigned size) { place_ = {rank, size}; }

std::vector<unsigned> Member::untold() const {
  std::vector<unsigned> untold;
  for (unsigned local = 0; local < trainers(); ++local) {
    if (stays(local) && locals_[local]->doorbell >= 0) untold.push_back(local);
  }
  return untold;
}

JoinedSession Member::tell(unsigned local) {
  const SessionRegion& region = session_->region(local);
  return {place_->rank * trainers() + local, place_->size * trainers(), region.descriptor(),
          region.bytes(), std::exchange(locals_[local]->doorbell, -1)};
}

void Member::attach(const control::JobDescriptor& job, const aggregation::Kernels& kernels) {
  kernels_ = &kernels;
  const std::uint32_t window = job.transport.window;
  const std::vector<EngineAt>& engines = engines_.all();
  if (!engines.empty() && (window == 0 || window > offer_.window)) {
    throw control::SetupError(
        fmt::format("the job's window is {} segments: expected 1 to {}, as was offered", window,
                    offer_.window));
  }
  std::vector<Part> parts;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    PacketReservation& reserved = offer_.reserved[i];
    reserved.commit(offer_.flows[i] * window);
    parts.push_back(
        {engines[i], engines[i].engine->prepare(job.id, *session_, plans_, request_.options.weight,
                                                kernels, {window, std::move(reserved)})});
  }
  parts_ = std::move(parts);
  window_ = engines.empty() ? 0 : window;
  offer_.reserved.clear();
  job_ = job.id;
  const RankOrder ranks = rank_order(job);
  on_each(parts_, [&](const Part& part) {
    part.at.engine->attach(*part.job, static_cast<std::uint16_t>(job.epoch), ranks);
    if (!part.job->is_leader()) return;
    for (unsigned local = 0; local < trainers(); ++local) {
      part.at.poller->watch(session_->doorbell(local));
    }
  });
}

void Member::start() {
  on_engines([this](Engine& engine) { engine.start(job_); });
}

void Member::hold() {
  on_engines([this](Engine& engine) { engine.hold(job_); });
}

void Member::halt() {
  on_engines([this](Engine& engine) { engine.halt(job_); });
}

void Member::reset(control::Epoch epoch, const control::JobCut& cut, std::uint32_t notice) {
  for (unsigned lane = 0; lane < session_->lanes(); ++lane) {
    // What an earlier reset has failed keeps its reason.
    if (cut.failed[lane] > cuts_[lane].through) cuts_[lane] = {cut.failed[lane], cut.code, notice};
  }
  take_hub_off(cut.code, cut.text, notice);
  on_engines([&](Engine& engine) { engine.reset(job_, cuts_, static_cast<std::uint16_t>(epoch)); });
}

void Member::detach() {
  on_each(parts_, [this](const Part& part) {
    for (unsigned local = 0; part.job->is_leader() && local < trainers(); ++local) {
      part.at.poller->unwatch(session_->doorbell(local));
    }
    part.at.engine->detach(job_);
  });
  for (Part& part : parts_) detached_.push_back(std::move(part.job));
  parts_.clear();
}

// The leader engine's part.
template <typename Function>
void Member::on_leader(const Function& function) const {
  for (const Part& part : parts_) {
    if (part.job->is_leader()) part.at.poller->call([&] { function(part); });
  }
}

bool Member::take_last(unsigned local) {
  bool taken = parts_.empty();  // without engines
  on_leader([&](const Part& part) { taken = part.at.engine->take_last(job_, local); });
  return taken;
}

void Member::note(const control::Departure& departure) {
  on_leader(
      [&](const Part& part) { part.at.engine->depart(job_, departure.server, departure.local); });
}

std::map<MailPeer, std::uint32_t> Member::deserters(std::size_t most) const {
  std::map<MailPeer, std::uint32_t> peers;
  if (!session_->any_deserters()) return peers;
  on_leader([&](const Part& part) { peers = part.job->mailroom()->deserters(most); });
  return peers;
}

void Member::end_deserted(const MailPeer& peer, std::uint32_t notice) {
  on_leader([&](const Part& part) { part.job->mailroom()->end_deserted(peer, notice); });
}

std::vector<std::uint64_t> Member::missed(const control::Departures& departures) const {
  const control::LaneNumbers reached = this->reached();
  const control::LaneNumbers completed = counts().completed;
  std::vector<std::uint64_t> missed(reached.size(), 0);
  bool all_ended = true;
  for (unsigned lane = 0; lane < reached.size(); ++lane) {
    const std::uint64_t shared =
        std::max(departures.first_in(lane)->submitted[lane], cuts_[lane].through);
    all_ended = all_ended && completed[lane] >= std::min(shared, reached[lane]);
    if (reached[lane] > shared) missed[lane] = shared + 1;
  }
  if (!all_ended) missed.assign(missed.size(), 0);
  return missed;
}

bool Member::needs_all() const {
  bool waits = hub_.hub() != nullptr;
  for (unsigned local = 0; local < trainers(); ++local) waits = waits || hub_.waits(local);
  return waits;
}

void Member::give_back_packets() {
  for (const Part& part : parts_) part.job->reap_hubs();
  std::erase_if(detached_, [](const auto& job) { return job->references() == 0; });
}

std::uint64_t Member::reserved_bytes() const {
  std::uint64_t bytes = 0;
  const auto add = [&](std::size_t engine, std::uint64_t segments) {
    bytes += segments * engines_.all()[engine].packets->bytes_of_segment();
  };
  for (std::size_t i = 0; i < offer_.reserved.size(); ++i) add(i, offer_.reserved[i].segments());
  for (std::size_t i = 0; i < parts_.size(); ++i) add(i, parts_[i].job->reserved_by_all());
  return bytes;
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
    most.push_back(cuts_[lane].through);
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
    counts.published[lane] = std::max(counts.published[lane], cuts_[lane].through);
    counts.completed[lane] = std::max(counts.completed[lane], cuts_[lane].through);
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
    const LaneCut& cut = cuts_[lane];
    session_->complete_through(lane, cut.through, cut.code, cut.notice);
    session_->complete_through(lane, UINT64_MAX, GRADCUBE_EPEER, end_notice_.value_or(0));
  }
  session_->fail_mail(GRADCUBE_EPEER, end_notice_.value_or(0));
  session_->end_hub(GRADCUBE_EPEER, end_notice_.value_or(0));
  hub_.end(GRADCUBE_EPEER, "the job has ended", end_notice_.value_or(0));
  forget_unread_hub();
  return session_->violation();
}

void Member::release(DepartedSessions& departed) {
  departed.add(std::move(session_), std::move(detached_), hub_.take_dropped());
}

}  // namespace gradcube::dataplane
