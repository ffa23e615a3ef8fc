#include "trainer/src/merge_layers.h"

#include <cstdint>
#include <string>

#include "control/merge/policies.h"
#include "trainer/src/base/failure.h"

namespace gradcube::trainer {

namespace {

using control::merge::Policy;

// Sums of fewer bytes are exact in a double.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 53;

[[noreturn]] void refuse(const std::string& what) { throw Failure(GRADCUBE_EINVAL, what); }

Policy policy_of(int policy) {
  switch (policy) {
    case GRADCUBE_WFBP:
      return Policy::wfbp;
    case GRADCUBE_SYNCEASGD:
      return Policy::synceasgd;
    case GRADCUBE_MGWFBP:
      return Policy::mgwfbp;
    case GRADCUBE_OPTIMAL:
      return Policy::optimal;
    default:
      refuse("there is no policy " + std::to_string(policy) + ": see gradcube_merge_policy");
  }
}

// Not so of a NaN.
bool is_time(double seconds, double most) { return seconds >= 0 && seconds <= most; }

control::merge::Iteration iteration_of(const MessageCost& cost, const gradcube_layer* layers,
                                       std::size_t count) {
  if (!is_time(cost.alpha, control::merge::kMostSeconds) ||
      !is_time(cost.beta, control::merge::kMostSecondsPerByte)) {
    refuse("alpha and beta are seconds, 0 to 10^9, and seconds per byte, 0 to 1");
  }
  if (layers == nullptr) refuse("the pointer 'layers' is NULL");
  if (count == 0 || count > kMostLayers) {
    refuse(std::to_string(count) + " layers: expected 1 to " + std::to_string(kMostLayers));
  }
  control::merge::Iteration iteration;
  iteration.cost = {cost.alpha, cost.beta};
  iteration.layers.reserve(count);
  std::uint64_t all_bytes = 0;
  for (std::size_t l = 0; l < count; ++l) {
    if (!is_time(layers[l].backward_seconds, control::merge::kMostSeconds)) {
      refuse("the backward_seconds of layer " + std::to_string(l) +
             " are no time: expected 0 to 10^9");
    }
    if (layers[l].bytes > kMostBytes - all_bytes) {
      refuse("layers 0 to " + std::to_string(l) + " have more than 2^53 bytes");
    }
    all_bytes += layers[l].bytes;
    iteration.layers.push_back({layers[l].bytes, layers[l].backward_seconds});
  }
  return iteration;
}

}  // namespace

void merge_layers(int policy, const MessageCost& cost, const gradcube_layer* layers,
                  std::size_t count, std::size_t* message_of) {
  const Policy chosen = policy_of(policy);
  const control::merge::Iteration iteration = iteration_of(cost, layers, count);
  if (message_of == nullptr) refuse("the pointer 'message_of' is NULL");
  std::size_t number = 0;
  for (const control::merge::Message& message : control::merge::messages_of(chosen, iteration)) {
    for (std::size_t l = message.first; l <= message.last; ++l) message_of[l] = number;
    ++number;
  }
}

}  // namespace gradcube::trainer
