#include "dataplane/daemon/engines/job_engines.h"

#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

// The ranks that the trainers see; members and ranks of a plan both ascend with the servers.
RankOrder rank_order(const control::JobDescriptor& job) {
  if (!job.ranks_are_wished) return {};
  std::vector<control::Rank> seen;
  for (const control::JobMember& member : job.members) seen.push_back(member.rank);
  return RankOrder(std::move(seen));
}

// That its frames' keys are made of, at the engines of a server.
control::Secret secret_of(const control::JobDescriptor& job, const control::JobNonce& nonce,
                          const std::vector<EngineAt>& engines) {
  const ClusterKeys* keys = engines.empty() ? nullptr : engines.front().engine->settings().keys;
  if (keys == nullptr) return {};
  const control::Secret* of_jobs = keys->of_jobs(job.transport.key);
  if (of_jobs == nullptr) {
    throw control::UsageError(fmt::format(
        "job \"{}\" has begun by the key {} of the cluster, which this server does not have, or "
        "has no longer: type `gradcube rekey` there if nobody has yet, else begin the job anew",
        job.name, control::key_id_text(job.transport.key)));
  }
  return control::derived_secret(*of_jobs, "job", fmt::format("{} {}", nonce.high, nonce.low));
}

}  // namespace

JobEngines::JobEngines(const std::string& job, const std::string& server, const LanePlans& plans,
                       std::uint64_t region_bytes, const NodeEngines& engines)
    : plans_(plans), engines_(engines) {
  std::vector<std::uint32_t> flows;
  for (const EngineAt& at : engines_.all()) flows.push_back(at.engine->check(plans, region_bytes));
  offer_ = offer_packets(job, server, flows, engines_);
  window_ = offer_.window;
}

JobEngines::Bells JobEngines::bells_of(const NodeEngines& engines) {
  Bells bells;
  for (const EngineAt& at : engines.all()) {
    if (at.leader) bells.leader = &at.poller->doorbell();
    if (!at.leader) bells.listeners.push_back(&at.poller->doorbell());
  }
  if (bells.listeners.empty()) bells.leader = nullptr;
  return bells;
}

void JobEngines::prepare(const control::JobDescriptor& job, const control::JobNonce& nonce,
                         Session& session, std::uint32_t weight,
                         const aggregation::Kernels& kernels) {
  kernels_ = &kernels;
  const std::uint32_t window = job.transport.window;
  const std::vector<EngineAt>& engines = engines_.all();
  if (!engines.empty() && (window == 0 || window > offer_.window)) {
    throw control::SetupError(
        fmt::format("the job's window is {} segments: expected 1 to {}, as was offered", window,
                    offer_.window));
  }
  // Chance, or a leader that errs: frames, flows and commands tell jobs apart by it alone.
  bool is_taken = false;
  for (const EngineAt& at : engines) {
    at.poller->call([&] { is_taken = is_taken || at.engine->has(job.id); });
  }
  if (is_taken) {
    throw control::SetupError(fmt::format(
        "job \"{}\" was given the number of another one by chance: open it again", job.name));
  }
  const control::Secret secret = secret_of(job, nonce, engines);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    offer_.reserved[i].commit(offer_.flows[i] * window);
    parts.push_back({engines[i], engines[i].engine->prepare(job.id, session, plans_, weight,
                                                            kernels, {window, {}}, secret)});
  }
  // Nothing throws from here on: the offer is there for the next attempt, or all of it is taken.
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].job->payloads().set_reserved(std::move(offer_.reserved[i]));
  }
  parts_ = std::move(parts);
  window_ = engines.empty() ? 0 : window;
  drop_offer();
  job_ = job.id;
}

void JobEngines::attach(const control::JobDescriptor& job, const control::JobNonce& nonce,
                        Session& session, std::uint32_t weight,
                        const aggregation::Kernels& kernels) {
  if (parts_.empty()) prepare(job, nonce, session, weight, kernels);
  const RankOrder ranks = rank_order(job);
  on_each(parts_, [&](const Part& part) {
    let_go(part);  // an attempt before this one may have ended in the middle of it
    part.at.engine->attach(*part.job, job.epoch, ranks);
    if (!part.job->is_leader()) return;
    for (unsigned local = 0; local < session.trainers(); ++local) {
      part.at.poller->watch(session.doorbell(local));
    }
  });
}

void JobEngines::at_engines(void (Engine::*command)(protocol::JobId)) const {
  on_each(parts_, [&](const Part& part) { (part.at.engine->*command)(job_); });
}

// All stand still before the first is reset. Else the leader engine would take that one's threads
// for done with what fails and tell the trainers that it ended well; or it would fail what another
// engine still works on, in buffers that are the trainers' again.
void JobEngines::reset(const LaneCuts& cuts, control::Epoch epoch) {
  halt();
  on_each(parts_, [&](const Part& part) { part.at.engine->reset(job_, cuts, epoch); });
}

// On its poller.
void JobEngines::let_go(const Part& part) const {
  const Session& session = part.job->session();
  for (unsigned local = 0; part.job->is_leader() && local < session.trainers(); ++local) {
    part.at.poller->unwatch(session.doorbell(local));
  }
  part.at.engine->detach(job_);
}

void JobEngines::detach() {
  on_each(parts_, [this](const Part& part) { let_go(part); });
  detached_.reserve(detached_.size() + parts_.size());  // all parts move, or none
  for (Part& part : parts_) detached_.push_back(std::move(part.job));
  parts_.clear();
}

std::uint64_t JobEngines::reserved_bytes() const {
  std::uint64_t bytes = 0;
  const auto add = [&](std::size_t engine, std::uint64_t segments) {
    bytes += segments * engines_.all()[engine].packets->bytes_of_segment();
  };
  for (std::size_t i = 0; i < offer_.reserved.size(); ++i) add(i, offer_.reserved[i].segments());
  for (std::size_t i = 0; i < parts_.size(); ++i) add(i, parts_[i].job->reserved_by_all());
  return bytes;
}

std::uint64_t JobEngines::segments_passed() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) {
    part.at.poller->call([&] {
      for (PlanExecutor& executor : part.job->executors()) {
        for (const Flow& flow : executor.flows()) sum += flow.send.next() + flow.receive.arrivals();
      }
    });
  }
  return sum;
}

void JobEngines::give_back_packets() {
  for (const Part& part : parts_) part.job->reap_hubs();
  std::erase_if(detached_, [](const auto& job) { return job->references() == 0; });
}

}  // namespace gradcube::dataplane
