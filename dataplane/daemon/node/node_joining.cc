// How trainers join a node: the first of a job there, and those that share the server with it.
#include <fmt/format.h>
#include <map>
#include <new>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/daemon/engines/job_plans.h"
#include "dataplane/daemon/node/node.h"
#include "dataplane/daemon/trainers/trainer_region.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

control::TransportFacts transport_of(const NodeEngines& engines, const Member& member) {
  if (engines.all().empty()) return {};
  const EngineSettings& settings = engines.all().front().engine->settings();
  const control::KeyId key = settings.keys == nullptr ? 0 : settings.keys->own_id();
  return {settings.segment_bytes, member.window(), false, key};
}

control::TrainerInfo info_of(const TrainerRequest& request) {
  return {static_cast<std::int32_t>(request.pid), request.uid};
}

// The server's rank among the servers, of a trainer that wishes for one. Throws JoinRefused.
std::optional<std::uint32_t> server_rank(const TrainerRequest& request,
                                         const control::JobOptions& options) {
  if (!request.rank.has_value() || options.trainers <= 1) return request.rank;
  if (*request.rank >= options.all_trainers()) {
    throw JoinRefused(GRADCUBE_EJOB,
                      fmt::format("job \"{}\": rank {}: expected 0 to {}", request.job,
                                  *request.rank, options.all_trainers() - 1));
  }
  return *request.rank / options.trainers;
}

// Its number among the server's trainers, if it asks for one: by itself or by its rank. Throws
// JoinRefused.
std::optional<unsigned> wished_place(const TrainerRequest& request,
                                     const control::JobOptions& options) {
  std::optional<unsigned> place = request.local;
  if (place.has_value() && *place >= options.trainers) {
    throw JoinRefused(
        GRADCUBE_EINVAL,
        fmt::format("job \"{}\": trainer {} of its server: expected 0 to {}, as it has "
                    "{} on each (trainers_per_server)",
                    request.job, *place, options.trainers - 1, options.trainers));
  }
  if (!request.rank.has_value() || options.trainers == 1) return place;
  const unsigned by_rank = *request.rank % options.trainers;
  if (place.value_or(by_rank) != by_rank) {
    throw JoinRefused(
        GRADCUBE_EINVAL,
        fmt::format("job \"{}\": rank {} is trainer {} of its server, as each has {}; this trainer "
                    "asks to be trainer {}",
                    request.job, *request.rank, by_rank, options.trainers, *place));
  }
  return by_rank;
}

// Throws JoinRefused where a trainer asks for a server that takes none.
void require_servers_with_trainers(const std::string& job, bcube::ServerId server,
                                   const control::JobOptions& options,
                                   const control::Topology& topology,
                                   const control::Aggregators& aggregators) {
  if (control::is_aggregator(aggregators, server)) {
    throw JoinRefused(
        GRADCUBE_EJOB,
        fmt::format("job \"{}\": server {} is an aggregator of this cluster (setting aggregators), "
                    "which takes no trainers: expected another server",
                    job, topology.space().text(server)));
  }
  try {
    control::require_trainers_servers(topology, aggregators, options.members,
                                      fmt::format("job \"{}\": members", job));
  } catch (const control::UsageError& error) {
    throw JoinRefused(GRADCUBE_EJOB, error.what());
  }
}

}  // namespace

TrainerId Node::join(const TrainerRequest& request, control::Instant now) {
  const std::shared_ptr<SessionRegion> region =
      request.region != nullptr ? request.region : make_own_region(request.heap_bytes);
  const control::JobOptions options =
      completed(request.options, around_.topology, around_.servers_per_core, around_.aggregators);
  require_servers_with_trainers(request.job, server_, options, around_.topology,
                                around_.aggregators);
  JobGroup* group = group_of(request);
  // A job with one trainer per server has no room for a second: job control says so.
  const bool shared = options.trainers > 1 || (group != nullptr && group->member->trainers() > 1);
  if (group != nullptr && shared) return join_group(*group, options, request, region, now);
  return begin_group(options, request, region, now);
}

// The trainers of this job that are here and wait for others, or run.
Node::JobGroup* Node::group_of(const TrainerRequest& request) {
  for (auto& [attempt, group] : groups_) {
    const control::JobAgent* agent = jobs_.agent(attempt);
    const bool lives = agent != nullptr && !agent->is_ending() && !agent->trainer_gone();
    if (lives && agent->name() == request.job && agent->owner() == request.owner) return &group;
  }
  return nullptr;
}

TrainerId Node::begin_group(const control::JobOptions& options, const TrainerRequest& request,
                            const std::shared_ptr<SessionRegion>& region, control::Instant now) {
  const control::JoinRequest asked{
      request.job,  server_, info_of(request), options, server_rank(request, options),
      request.owner};
  if (const auto reason = jobs_.objection(asked); reason.has_value()) {
    throw JoinRefused(GRADCUBE_EJOB, *reason);
  }
  LanePlans plans;
  try {
    plans = around_.plans.plans(options, around_.topology);
  } catch (const control::UsageError& error) {
    throw JoinRefused(GRADCUBE_EINVAL, error.what());
  }
  const unsigned local = wished_place(request, options).value_or(0);
  give_back_packets();
  auto member = std::make_unique<Member>(asked, space().text(server_), region, std::move(plans),
                                         *engines_, local);
  // Its place is made first: where there is no memory for it, nobody has joined.
  std::map<Attempt, JobGroup> places;
  JobGroup& group = places[0];
  group.progress = member->submitted().completed;
  const auto outcome = jobs_.join(asked, transport_of(*engines_, *member), now, actions_);
  if (const auto* refused = std::get_if<control::Refused>(&outcome)) {
    throw JoinRefused(GRADCUBE_EJOB, refused->text);
  }
  group.attempt = std::get<Attempt>(outcome);
  group.member = std::move(member);
  auto place = places.extract(places.begin());
  place.key() = group.attempt;
  groups_.insert(std::move(place));
  stirred_ = true;
  return {server_, group.attempt, local};
}

TrainerId Node::join_group(JobGroup& group, const control::JobOptions& options,
                           const TrainerRequest& request,
                           const std::shared_ptr<SessionRegion>& region, control::Instant now) {
  Member& member = *group.member;
  const control::JoinRequest& first = member.request();
  const std::string server = space().text(server_);
  if (options != first.options) {
    throw JoinRefused(
        GRADCUBE_EJOB,
        fmt::format(
            "job \"{}\" has {} on server {}; this trainer asks for {}: expected the same of "
            "all its trainers",
            first.name, describe(first.options, space()), server, describe(options, space())));
  }
  if (server_rank(request, options) != first.rank) {
    throw JoinRefused(
        GRADCUBE_EJOB,
        fmt::format("job \"{}\": the trainers of server {} ask for ranks that are not "
                    "side by side: expected server * {} + number of the trainer",
                    first.name, server, options.trainers));
  }
  const std::optional<unsigned> wished = wished_place(request, options);
  const std::optional<unsigned> local = wished.has_value() ? wished : member.free_place();
  if (!local.has_value()) {
    throw JoinRefused(GRADCUBE_EJOB,
                      fmt::format("job \"{}\" already has its {} trainers on server {}", first.name,
                                  member.trainers(), server));
  }
  if (member.has(*local)) {
    throw JoinRefused(GRADCUBE_EJOB,
                      fmt::format("job \"{}\" already has a trainer {} on server {}: pid {}",
                                  first.name, *local, server, member.trainer(*local).pid));
  }
  member.add(*local, info_of(request), region);
  stirred_ = true;
  try {
    happened(group, control::event::TrainerJoined{}, now);
  } catch (const std::bad_alloc&) {
    // It has been counted. What job control says of it is repeated in time.
  }
  return {server_, group.attempt, *local};
}

}  // namespace gradcube::dataplane
