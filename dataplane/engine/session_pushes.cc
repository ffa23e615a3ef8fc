// A session's pushes to its job's hub.

#include <cmath>
#include <limits>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_planes.h"
#include "dataplane/engine/session.h"

namespace gradcube::dataplane {

using shared::PushKind;

Session::Take Session::take_push(Seat& seat, unsigned local, const shared::Submission& submission) {
  const shared::SubmittedPush& asked = submission.push;
  if (hub() == nullptr || asked.hub != hub()->number()) {
    if (hub_code_ == 0) return violate(local, "a push to a hub that there is not");
    count_taken(seat);
    complete(seat, submission.request, hub_code_, hub_notice_);
    publish_completions(seat);
    return Take::taken;
  }
  if (const char* violation = check_push(seat, local, submission)) return violate(local, violation);
  HubBoard::Push push = {.request = submission.request,
                         .kind = static_cast<PushKind>(asked.kind),
                         .learning_rate = asked.rate,
                         .digest = asked.digest,
                         .buffer = seat.region->base() + submission.offset,
                         .steps = asked.steps,
                         .plane = asked.plane};
  if (push.kind == PushKind::gradients) {
    if (asked.rate == shared::kOwnRate) {
      push.learning_rate = hub()->model().settings().learning_rate;
    }
    // As frames tell it: so all trainers have the same, those of one server, too.
    if (hub()->shape().aggregator.has_value()) {
      push.learning_rate = static_cast<float>(push.learning_rate);
    }
  }
  if (push.kind == PushKind::restored) find_arrays(push, asked.key);
  hub()->board().push(asked.key, local, push);
  count_taken(seat);
  return Take::taken;
}

const char* Session::check_push(const Seat& seat, unsigned local,
                                const shared::Submission& submission) const {
  const shared::SubmittedPush& asked = submission.push;
  const auto& keys = hub()->model().keys();
  if (asked.key >= keys.size()) return "a push of a key that its hub has not";
  const control::hub::HubKey& key = keys[asked.key];
  if (submission.count != key.elements || submission.dtype != static_cast<unsigned>(key.type)) {
    return "a push that is not as its key";
  }
  if (asked.kind >= shared::kPushKinds) return "a push of an unknown kind";
  if (const char* violation = check_fields(key, asked)) return violation;
  std::uint64_t bytes = key.bytes();
  if (static_cast<PushKind>(asked.kind) == PushKind::restored) {
    const std::size_t size = aggregation::element_bytes(key.type);
    bytes = shared::restored_array(key.elements, size, restored_arrays_of(key));
  }
  if (!hub()->board().may_push(asked.key, local)) {
    return "a push of a key whose last push has not ended";
  }
  return check_memory(*seat.region, submission.offset, bytes);
}

// Of what is pushed of the key. Only a hub with an aggregator has planes, and one without has
// owners that restore.
const char* Session::check_fields(const control::hub::HubKey& key,
                                  const shared::SubmittedPush& asked) const {
  const auto kind = static_cast<PushKind>(asked.kind);
  const bool of_plane = shared::is_of_plane(kind);
  const bool has_steps = of_plane || kind == PushKind::restored;
  if (asked.plane >= (of_plane ? planes_of(key) : 1) || (asked.steps != 0 && !has_steps) ||
      (asked.digest != 0 && kind != PushKind::weights) ||
      (asked.rate != 0 && kind != PushKind::gradients)) {
    return "a push with fields that pushes have not";
  }
  const bool has_aggregator = hub()->shape().aggregator.has_value();
  if (of_plane ? !has_aggregator : kind == PushKind::restored && has_aggregator) {
    return "a push of what its hub does not save or restore so";
  }
  const std::uint64_t most = kind == PushKind::saved ? 0 : shared::kMostLoadedSteps + 1;
  if (of_plane && asked.steps > most) return "a push of more steps than can be loaded";
  if (kind != PushKind::gradients || asked.rate == shared::kOwnRate) return nullptr;
  // An aggregator is told it as a float.
  const double most_rate = has_aggregator ? std::numeric_limits<float>::max() : asked.rate;
  if (std::isfinite(asked.rate) && asked.rate >= 0 && asked.rate <= most_rate) return nullptr;
  return "a push without a valid learning rate";
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
