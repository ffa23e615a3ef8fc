// A session's pushes to its job's hub.

#include <bit>
#include <cmath>
#include <limits>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_planes.h"
#include "dataplane/engine/session.h"

namespace gradcube::dataplane {

namespace {

bool is_of_plane(shared::Kind kind) {
  return kind == shared::Kind::push_saved || kind == shared::Kind::push_loaded;
}

}  // namespace

Session::Take Session::take_push(Seat& seat, unsigned local, const shared::Submission& submission) {
  if (hub() == nullptr || submission.paths != hub()->number()) {
    if (hub_code_ == 0) return violate(local, "a push to a hub that there is not");
    count_taken(seat);
    complete(seat, submission.request, hub_code_, hub_notice_);
    publish_completions(seat);
    return Take::taken;
  }
  const auto kind = static_cast<shared::Kind>(submission.kind);
  if (const char* violation = check_push(seat, local, submission)) return violate(local, violation);
  HubBoard::Push push = {.request = submission.request,
                         .kind = HubPush::Kind::weights,
                         .buffer = seat.region->base() + submission.offset};
  if (kind == shared::Kind::push_gradients) {
    const double rate = std::bit_cast<double>(submission.tag);
    push.kind = HubPush::Kind::gradients;
    push.learning_rate = rate == shared::kOwnRate ? hub()->model().settings().learning_rate : rate;
    // As frames tell it: so all trainers have the same, those of one server, too.
    if (hub()->shape().aggregator.has_value()) {
      push.learning_rate = static_cast<float>(push.learning_rate);
    }
  } else if (kind == shared::Kind::push_restored) {
    push.kind = HubPush::Kind::restored;
    push.steps = submission.tag;
    find_arrays(push, submission.root);
  } else if (is_of_plane(kind)) {
    push.kind = kind == shared::Kind::push_saved ? HubPush::Kind::saved : HubPush::Kind::loaded;
    push.plane = submission.op;
    push.steps = submission.tag;
  } else {
    push.digest = submission.tag;
  }
  hub()->board().push(submission.root, local, push);
  count_taken(seat);
  return Take::taken;
}

const char* Session::check_push(const Seat& seat, unsigned local,
                                const shared::Submission& submission) const {
  const auto& keys = hub()->model().keys();
  if (submission.root >= keys.size()) return "a push of a key that its hub has not";
  const control::hub::HubKey& key = keys[submission.root];
  if (submission.count != key.elements || submission.dtype != static_cast<unsigned>(key.type)) {
    return "a push that is not as its key";
  }
  const auto kind = static_cast<shared::Kind>(submission.kind);
  const unsigned planes = is_of_plane(kind) ? planes_of(key) : 1;
  if (submission.op >= planes || submission.lane != 0 || submission.place != 0) {
    return "a push with fields that pushes have not";
  }
  if (const char* violation = check_saved(kind, submission.tag)) return violation;
  std::uint64_t bytes = key.bytes();
  if (kind == shared::Kind::push_gradients) {
    const double rate = std::bit_cast<double>(submission.tag);
    const bool is_told = hub()->shape().aggregator.has_value();
    const double most = is_told ? std::numeric_limits<float>::max() : rate;
    if (rate != shared::kOwnRate && !(std::isfinite(rate) && rate >= 0 && rate <= most)) {
      return "a push without a valid learning rate";
    }
  } else if (kind == shared::Kind::push_restored) {
    const std::size_t size = aggregation::element_bytes(key.type);
    bytes = shared::restored_array(key.elements, size, restored_arrays_of(key));
  }
  if (!hub()->board().may_push(submission.root, local)) {
    return "a push of a key whose last push has not ended";
  }
  return check_memory(*seat.region, submission.offset, bytes);
}

// Only a hub with an aggregator has planes, and one without has owners that restore.
const char* Session::check_saved(shared::Kind kind, std::uint64_t tag) const {
  const bool has_planes = hub()->shape().aggregator.has_value();
  if (is_of_plane(kind) ? !has_planes : kind == shared::Kind::push_restored && has_planes) {
    return "a push of what its hub does not save or restore so";
  }
  const std::uint64_t most = kind == shared::Kind::push_saved ? 0 : shared::kMostLoadedSteps + 1;
  if (is_of_plane(kind) && tag > most) return "a push of more steps than can be loaded";
  return nullptr;
}

unsigned Session::planes_of(const control::hub::HubKey& key) const {
  return control::hub_planes(key.type,
                             aggregation::optimizer_states(hub()->model().settings().rule));
}

std::uint64_t Session::restored_arrays_of(const control::hub::HubKey& key) const {
  return shared::restored_arrays(aggregation::element_bytes(key.type),
                                 aggregation::optimizer_states(hub()->model().settings().rule));
}

// In the buffer of what is restored.
void Session::find_arrays(HubBoard::Push& push, std::uint32_t number) const {
  const control::hub::HubKey& key = hub()->model().keys()[number];
  const std::size_t size = aggregation::element_bytes(key.type);
  const std::size_t first = size == sizeof(float) ? 1 : 0;
  for (std::uint64_t i = 0; i < restored_arrays_of(key); ++i) {
    push.arrays[first + i] =
        reinterpret_cast<const float*>(push.buffer + shared::restored_array(key.elements, size, i));
  }
}

void Session::end_hub(std::int32_t code, std::uint32_t notice) {
  if (hub() == nullptr) return;
  hub()->board().fail_all([&](unsigned local, std::uint64_t request) {
    complete(seats_[local], request, code, notice);
  });
  hub_.store(nullptr, std::memory_order_release);
  hub_code_ = code;
  hub_notice_ = notice;
  for_each_seated([](const Seat& seat) { publish_completions(seat); });
}

unsigned Session::end_pushes() {
  const unsigned rounds = hub()->board().take_ended(
      [this](unsigned local, std::uint64_t request) { complete(seats_[local], request, 0, 0); });
  if (rounds != 0) for_each_seated([](const Seat& seat) { publish_completions(seat); });
  return rounds;
}

}  // namespace gradcube::dataplane
