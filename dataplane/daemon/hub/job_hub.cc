#include "dataplane/daemon/hub/job_hub.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "control/base/errors.h"
#include "control/base/units.h"

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

void JobHub::ask(unsigned local, HubWish wish, const LanePlans& plans, std::uint32_t all_trainers,
                 const control::Topology& topology) {
  if (wish.lane >= plans.size() || !engines_.attached()) {
    hub_.refuse(local, wish.number, GRADCUBE_EINVAL,
                engines_.attached() ? fmt::format("the job has no lane {}", wish.lane)
                                    : "the job does not run on this server");
    return;
  }
  // Trainers wish for the next one when all have freed the one before, though another's word of
  // that may still be on its way.
  if (wish.number > hub_.wish().number && hub_.is_freed_by(local)) end_as_freed();
  ServerHubShape shape;
  shape.choice = plans[wish.lane].choice;
  shape.rank = shape.choice->placement().rank(engines_.engines().server()).value();
  shape.trainers = session_.trainers();
  shape.all_trainers = all_trainers;
  complete(shape);
  hub_.ask(local, std::move(wish), {shape, &topology}, session_.region(local).charge().another());
}

void JobHub::host(HubWish wish, HubDesign design, MemoryQuota::Charge charge) {
  if (!engines_.attached()) throw control::SetupError("the server has no engines");
  complete(design.shape);
  hub_.ask(0, std::move(wish), design, std::move(charge));
}

// By the engines of this server.
void JobHub::complete(ServerHubShape& shape) const {
  const EngineSettings& settings = engines_.parts().front().at.engine->settings();
  shape.kernels = &engines_.kernels();
  shape.segment_bytes = settings.segment_bytes;
  shape.block_bytes = settings.block_bytes;
  shape.engines = settings.engines;
  shape.numa_node = engines_.engines().numa_node();
}

bool JobHub::is_needed() const {
  bool waits = hub() != nullptr;
  for (unsigned local = 0; local < session_.trainers(); ++local) waits = waits || hub_.waits(local);
  return waits;
}

std::vector<HubAnswer> JobHub::work(const HubLifetime::IsWhole& is_whole) {
  if (!fail_pushes()) return {};
  std::vector<HubAnswer> answers =
      hub_.work([this](const std::shared_ptr<ServerHub>& hub) { use(hub); }, is_whole);
  std::erase_if(answers, [this](const HubAnswer& answer) { return has_gone(answer.local); });
  return answers;
}

void JobHub::use(const std::shared_ptr<ServerHub>& hub) {
  if (!engines_.attached()) {
    throw control::SetupError("the job does not run on this server any more");
  }
  const std::vector<JobEngines::Part>& parts = engines_.parts();
  std::vector<std::unique_ptr<EngineHub>> hubs;
  for (const JobEngines::Part& part : parts) {
    const std::uint32_t flows = part.at.engine->check_hub(hub->model(), hub->shape());
    hubs.push_back(part.at.engine->prepare_hub(
        *part.job, hub, reserve_packets(hub_.wish(), *part.at.packets, flows, engines_.window())));
  }
  try {
    on_each(parts, [&](const JobEngines::Part& part) {
      part.at.engine->attach_hub(*part.job,
                                 std::move(hubs[static_cast<std::size_t>(&part - parts.data())]));
      if (part.job->is_leader()) session_.set_hub(*hub);
    });
  } catch (...) {  // one of the engines has no memory for it: none is to have it
    on_each(parts, [this](const JobEngines::Part& part) {
      part.at.engine->detach_hub(*part.job);
      if (part.job->is_leader()) session_.end_hub(GRADCUBE_ENOMEM);
    });
    throw;
  }
}

const std::string* JobHub::key(std::uint64_t number) const {
  const ServerHub* of = hub();
  return of == nullptr || number >= of->model().keys().size() ? nullptr
                                                              : &of->model().keys()[number].name;
}

std::string JobHub::why_pushed(std::uint64_t number, const std::string& job,
                               const std::function<std::int32_t(unsigned local)>& pid) const {
  const std::string* name = this->key(number);
  if (name == nullptr) return "the job has no such hub";
  const auto key = static_cast<std::uint32_t>(number);
  std::optional<unsigned> late;
  engines_.on_leader([&](const JobEngines::Part&) { late = hub()->board().latest(key); });
  if (late.has_value() && *late < session_.trainers()) {
    return fmt::format(
        "key \"{}\" waits for trainer {} of this server (pid {}), which has not pushed it", *name,
        *late, pid(*late));
  }
  std::optional<HubExecutor::Missing> missing;
  on_each(engines_.parts(), [&](const JobEngines::Part& part) {
    if (part.job->hub() == nullptr) return;
    for (HubExecutor& executor : part.job->hub()->executors()) {
      const auto found = executor.missing(key);
      if (!missing.has_value() && found.has_value()) missing = found;
    }
  });
  if (!missing.has_value()) return fmt::format("key \"{}\" is about to end", *name);
  return fmt::format(
      "key \"{}\" of the hub of job \"{}\" waits for {} of server {} in step {}: its trainer, or "
      "one behind it, has not pushed the key, or frames are lost",
      *name, job,
      missing->stage == protocol::Stage::aggregation ? "the gradients" : "the new weights",
      engines_.engines().space().text(missing->server), missing->step + 1);
}

std::string JobHub::progress_text() const {
  const ServerHub* of = hub();
  if (of == nullptr) return "";
  std::uint32_t behind = 0;
  std::uint64_t least = UINT64_MAX, most = 0;
  engines_.on_leader([&](const JobEngines::Part&) {
    for (std::uint32_t key = 0; key < of->model().keys().size(); ++key) {
      const std::uint64_t steps = of->board().steps(key);
      if (steps < least) behind = key;
      least = std::min(least, steps);
      most = std::max(most, steps);
    }
  });
  if (least > most) return "";  // no engine has it any more
  if (least == most) {
    return fmt::format("; its hub had ended step {} of all keys on this server", least);
  }
  return fmt::format(
      "; its hub had ended step {} of some keys on this server, and step {} of \"{}\"", most, least,
      of->model().keys()[behind].name);
}

void JobHub::free(unsigned local, std::uint32_t number) {
  if (number != hub_.wish().number) return;  // that one is over
  hub_.freed_by(local);
  if (all_have_let_go()) end_as_freed();
}

void JobHub::leave(unsigned local) {
  gone_ |= std::uint32_t{1} << local;
  forget_unread();
}

void JobHub::end(std::int32_t code, const std::string& why, std::uint32_t notice) {
  take_off_engines(code, notice);
  hub_.end(code, why, notice);
  forget_unread();
}

void JobHub::lose(std::int32_t code, const std::string& why, std::uint32_t notice) {
  take_off_engines(code, notice);
  hub_.fail(code, why, notice);
  forget_unread();
}

bool JobHub::all_have_let_go() const {
  for (unsigned local = 0; local < session_.trainers(); ++local) {
    if (!has_gone(local) && !hub_.is_freed_by(local)) return false;
  }
  return true;
}

// Before a hub stands, none has its memory; one that stands may be read until it ends.
void JobHub::forget_unread() {
  if (hub() == nullptr && all_have_let_go()) forget();
}

void JobHub::take_off_engines(std::int32_t code, std::uint32_t notice) {
  if (hub() == nullptr) return;
  // First: who is told that a push has failed finds the end there, and its next push changes no
  // key.
  hub_.hub()->set_end(code, notice);
  const std::vector<JobEngines::Part>& parts = engines_.parts();
  on_each(parts, [](const JobEngines::Part& part) { part.at.engine->detach_hub(*part.job); });
  failing_ = Failing{hub_.hub(), code, notice};
  fail_pushes();
}

// The trainers have their buffers back with it. No engine of this server works there any more, but
// other servers' take what is on its way, where their hub still stands. False: not yet.
bool JobHub::fail_pushes() {
  if (!failing_.has_value()) return true;
  const std::vector<JobEngines::Part>& parts = engines_.parts();
  const bool none_is_on_its_way = std::ranges::all_of(
      parts, [](const JobEngines::Part& each) { return each.job->reap_hubs(); });
  if (!none_is_on_its_way && session_.pushes_in_flight() != 0) return false;
  engines_.on_leader(
      [this](const JobEngines::Part&) { session_.end_hub(failing_->code, failing_->notice); });
  failing_.reset();
  return true;
}

}  // namespace gradcube::dataplane
