// A member's hub: how it comes to the engines, and how it goes.

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "control/base/errors.h"
#include "control/base/units.h"
#include "dataplane/daemon/member.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// As many windows as its flows have, if there is room for so much and half of the room stays free;
// one is enough to go on.
PacketReservation reserve_packets(const HubWish& wish, PacketShare& share, std::uint32_t flows,
                                  unsigned window) {
  const std::uint32_t most = std::min({flows * window, share.free() / 2, PayloadPackets::kMost});
  std::optional<PacketReservation> reserved = share.reserve(std::max(most, window));
  if (!reserved.has_value()) {
    throw control::SetupError(fmt::format(
        "job \"{}\": its hub needs {} of packet memory on server {}, and {} of {} is free: "
        "expected "
        "that other jobs end first, or a cluster with more (gradcube up --packet-memory)",
        wish.job, control::format_size(window * share.bytes_of_segment()), wish.server,
        control::format_size(share.free() * share.bytes_of_segment()),
        control::format_size(share.most() * share.bytes_of_segment())));
  }
  reserved->commit(reserved->segments());
  return std::move(*reserved);
}

}  // namespace

void Member::ask_hub(unsigned local, HubWish wish, const control::Topology& topology) {
  if (wish.lane >= plans_.size() || parts_.empty()) {
    hub_.refuse(local, wish.number, GRADCUBE_EINVAL,
                parts_.empty() ? "the job does not run on this server"
                               : fmt::format("the job has no lane {}", wish.lane));
    return;
  }
  const bcube::ServerId server = parts_.front().at.engine->settings().server;
  const std::shared_ptr<const control::PlanChoice>& choice = plans_[wish.lane].choice;
  ServerHubShape shape;
  shape.choice = choice;
  shape.rank = choice->placement().rank(server).value();
  shape.trainers = trainers();
  shape.all_trainers = request_.options.all_trainers();
  complete(shape);
  hub_.ask(local, std::move(wish), {shape, &topology}, session_->region(local).charge().another());
}

void Member::host_hub(HubWish wish, ServerHubShape shape, MemoryQuota::Charge charge) {
  if (parts_.empty()) throw control::SetupError("the server has no engines");
  complete(shape);
  hub_.ask(0, std::move(wish), {shape, nullptr}, std::move(charge));
}

// By the engines of this server.
void Member::complete(ServerHubShape& shape) const {
  const EngineSettings& settings = parts_.front().at.engine->settings();
  shape.kernels = kernels_;
  shape.segment_bytes = settings.segment_bytes;
  shape.block_bytes = settings.block_bytes;
  shape.engines = settings.engines;
  shape.numa_node = engines_.numa_node();
}

std::vector<HubAnswer> Member::work_hub(const MemberHub::IsWhole& is_whole) {
  return hub_.work([this](const std::shared_ptr<ServerHub>& hub) { use_hub(hub); }, is_whole);
}

void Member::use_hub(const std::shared_ptr<ServerHub>& hub) {
  if (parts_.empty()) throw control::SetupError("the job does not run on this server any more");
  std::vector<std::unique_ptr<EngineHub>> hubs;
  for (const Part& part : parts_) {
    const std::uint32_t flows = part.at.engine->check_hub(hub->model(), hub->shape());
    hubs.push_back(part.at.engine->prepare_hub(
        *part.job, hub, reserve_packets(hub_.wish(), *part.at.packets, flows, window_)));
  }
  on_each(parts_, [&](const Part& part) {
    if (part.job->is_leader()) session_->set_hub(*hub);
    part.at.engine->attach_hub(*part.job,
                               std::move(hubs[static_cast<std::size_t>(&part - parts_.data())]));
  });
}

std::string Member::why_pushed(std::uint64_t number) const {
  const ServerHub* of = hub();
  if (of == nullptr || number >= of->model().keys().size()) return "the job has no such hub";
  const auto key = static_cast<std::uint32_t>(number);
  const std::string name = of->model().keys()[key].name;
  std::optional<unsigned> late;
  on_each(parts_, [&](const Part& part) {
    if (part.job->is_leader()) late = of->board().latest(key);
  });
  if (late.has_value() && *late < locals_.size()) {
    return fmt::format(
        "key \"{}\" waits for trainer {} of this server (pid {}), which has not pushed it", name,
        *late, locals_[*late]->info.pid);
  }
  std::optional<HubExecutor::Missing> missing;
  on_each(parts_, [&](const Part& part) {
    if (part.job->hub() == nullptr) return;
    for (HubExecutor& executor : part.job->hub()->executors()) {
      const auto found = executor.missing(key);
      if (!missing.has_value() && found.has_value()) missing = found;
    }
  });
  if (!missing.has_value()) return fmt::format("key \"{}\" is about to end", name);
  return fmt::format(
      "key \"{}\" of the hub of job \"{}\" waits for {} of server {} in step {}: its trainer, or "
      "one "
      "behind it, has not pushed the key, or frames are lost",
      name, request_.name,
      missing->stage == protocol::Stage::aggregation ? "the gradients" : "the new weights",
      engines_.space().text(missing->server), missing->step + 1);
}

void Member::end_hub(unsigned local, std::uint32_t number) {
  if (number != hub_.wish().number) return;  // that one is over
  hub_.freed_by(local);
  take_hub_off(GRADCUBE_EINVAL, "the job's hub was freed", 0);
}

void Member::take_hub_off(std::int32_t code, const std::string& why, std::uint32_t notice) {
  take_hub_off_engines(code, notice);
  hub_.end(code, why, notice);
  forget_unread_hub();
}

// Before a hub stands, none has its memory; one that stands may be read until it ends.
void Member::forget_unread_hub() {
  if (hub_.hub() != nullptr) return;
  for (unsigned local = 0; local < trainers(); ++local) {
    if (has(local) && stays(local) && !hub_.is_freed_by(local)) return;
  }
  forget_hub();
}

void Member::take_hub_off_engines(std::int32_t code, std::uint32_t notice) {
  if (hub_.hub() == nullptr) return;
  on_each(parts_, [](const Part& part) { part.at.engine->detach_hub(*part.job); });
  // Now no engine works in the trainers' buffers any more, and they may have them back.
  on_each(parts_, [&](const Part& part) {
    if (part.job->is_leader()) session_->end_hub(code, notice);
  });
}

}  // namespace gradcube::dataplane
