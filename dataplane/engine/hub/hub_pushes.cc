#include "dataplane/engine/hub/hub_pushes.h"

#include <bit>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_planes.h"

namespace gradcube::dataplane {

HubPushes::Outcome HubPushes::take(const SessionRegion& region, unsigned local,
                                   const shared::Submission& submission) {
  const shared::SubmittedPush& asked = submission.push;
  if (hub() == nullptr || asked.hub != hub()->number()) {
    return {code_ == 0 ? "a push to a hub that there is not" : nullptr, code_, notice_};
  }
  if (const char* violation = check(region, local, submission)) return {.violation = violation};
  HubBoard::Push push = {.request = submission.request,
                         .kind = static_cast<PushKind>(asked.kind),
                         .learning_rate = asked.rate,
                         .digest = asked.digest,
                         .buffer = region.base() + submission.offset,
                         .steps = asked.steps,
                         .plane = asked.plane};
  if (shared::has_rate(push.kind)) {
    if (asked.rate == shared::kOwnRate) {
      push.learning_rate = hub()->model().settings_of(asked.key).learning_rate;
    }
    // As frames tell it: so all trainers have the same, those of one server, too.
    if (!hub()->shape().aggregators.empty()) {
      push.learning_rate = static_cast<float>(push.learning_rate);
    }
  }
  if (push.kind == PushKind::restored) find_arrays(push, asked.key);
  hub()->board().push(asked.key, local, push);
  return {};
}

const char* HubPushes::check(const SessionRegion& region, unsigned local,
                             const shared::Submission& submission) const {
  const shared::SubmittedPush& asked = submission.push;
  const auto& keys = hub()->model().keys();
  if (asked.key >= keys.size()) return "a push of a key that its hub has not";
  const control::HubKey& key = keys[asked.key];
  if (submission.count != key.elements || submission.dtype != static_cast<unsigned>(key.type)) {
    return "a push that is not as its key";
  }
  if (asked.kind >= shared::kPushKinds) return "a push of an unknown kind";
  if (const char* violation = check_fields(key, asked)) return violation;
  const auto kind = static_cast<PushKind>(asked.kind);
  std::uint64_t bytes = kind == PushKind::applied ? 0 : key.bytes();
  if (kind == PushKind::restored) {
    const std::size_t size = aggregation::element_bytes(key.type);
    bytes = shared::restored_array(key.elements, size, restored_arrays_of(key));
  }
  if (!hub()->board().may_push(asked.key, local)) {
    return "a push of a key whose last push has not ended";
  }
  return region.problem_of(submission.offset, bytes);
}

// Of what is pushed of the key. Only a hub with an aggregator has planes, and one without has
// owners that restore.
const char* HubPushes::check_fields(const control::HubKey& key,
                                    const shared::SubmittedPush& asked) const {
  const auto kind = static_cast<PushKind>(asked.kind);
  const bool of_plane = shared::is_of_plane(kind);
  const bool has_steps = of_plane || kind == PushKind::restored;
  if (asked.plane >= (of_plane ? planes_of(key) : 1) || (asked.steps != 0 && !has_steps) ||
      (asked.digest != 0 && kind != PushKind::weights && kind != PushKind::applied) ||
      (asked.rate != 0 && !shared::has_rate(kind))) {
    return "a push with fields that pushes have not";
  }
  const bool has_aggregator = !hub()->shape().aggregators.empty();
  if (of_plane ? !has_aggregator : kind == PushKind::restored && has_aggregator) {
    return "a push of what its hub does not save or restore so";
  }
  if (shared::accumulates(kind) && !hub()->shape().accumulates) {
    return "a push that its hub does not accumulate";
  }
  if (kind == PushKind::applied && !shared::is_scale(std::bit_cast<float>(asked.digest))) {
    return "a push without a valid scale";
  }
  const std::uint64_t most = kind == PushKind::saved ? 0 : shared::kMostLoadedSteps + 1;
  if (of_plane && asked.steps > most) return "a push of more steps than can be loaded";
  if (!shared::has_rate(kind) || asked.rate == shared::kOwnRate) return nullptr;
  if (shared::is_learning_rate(asked.rate, has_aggregator)) return nullptr;
  return "a push without a valid learning rate";
}

unsigned HubPushes::planes_of(const control::HubKey& key) const {
  return control::hub_planes(key.type, aggregation::optimizer_states(hub()->model().rule()));
}

std::uint64_t HubPushes::restored_arrays_of(const control::HubKey& key) const {
  return shared::restored_arrays(aggregation::element_bytes(key.type),
                                 aggregation::optimizer_states(hub()->model().rule()));
}

// In the buffer of what is restored.
void HubPushes::find_arrays(HubBoard::Push& push, std::uint32_t number) const {
  const control::HubKey& key = hub()->model().keys()[number];
  const std::size_t size = aggregation::element_bytes(key.type);
  const std::size_t first = size == sizeof(float) ? 1 : 0;
  for (std::uint64_t i = 0; i < restored_arrays_of(key); ++i) {
    push.arrays[first + i] =
        reinterpret_cast<const float*>(push.buffer + shared::restored_array(key.elements, size, i));
  }
}

void HubPushes::end(std::int32_t code, std::uint32_t notice) {
  hub_.store(nullptr, std::memory_order_release);
  code_ = code;
  notice_ = notice;
}

}  // namespace gradcube::dataplane
