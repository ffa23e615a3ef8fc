#include "control/training/training_model.h"

#include <cmath>

#include "control/training/backward_times.h"

namespace gradcube::control::training {
namespace {

constexpr double kGoogleNetSeconds = 0.3509;
constexpr double kResNet50Seconds = 0.6193;

double cpu_seconds(std::string_view network) { return backward_times(network).seconds(); }

}  // namespace

double gpu_seconds(std::string_view network) {
  if (network == "googlenet") return kGoogleNetSeconds;
  if (network == "resnet50") return kResNet50Seconds;
  const double mean = std::sqrt(kGoogleNetSeconds / cpu_seconds("googlenet") * kResNet50Seconds /
                                cpu_seconds("resnet50"));
  return mean * cpu_seconds(network);
}

merge::Iteration iteration_of(const Network& network, double computing_seconds,
                              const model::AllReduceCost& cost) {
  const BackwardTimes times = backward_times(network.name);
  const double scale = computing_seconds / times.seconds() * 1e-6;
  merge::Iteration iteration{
      .cost = cost, .forward_seconds = scale * times.forward_microseconds, .layers = {}};
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    iteration.layers.push_back({.bytes = network.layers[l].bytes(),
                                .backward_seconds = scale * times.layers[l].microseconds});
  }
  return iteration;
}

std::vector<PolicyTime> policy_times(const merge::Iteration& iteration) {
  std::vector<PolicyTime> all;
  for (const merge::Policy policy : merge::kPolicies) {
    const auto messages = merge::messages_of(policy, iteration);
    all.push_back({.policy = policy,
                   .messages = messages.size(),
                   .seconds = merge::iteration_seconds(iteration, messages)});
  }
  const auto seconds_of = [&all](merge::Policy policy) {
    for (const PolicyTime& time : all) {
      if (time.policy == policy) return time.seconds;
    }
    return 0.0;
  };
  const double wfbp = seconds_of(merge::Policy::wfbp);
  const double synceasgd = seconds_of(merge::Policy::synceasgd);
  for (PolicyTime& time : all) {
    time.speedup_over_wfbp = wfbp / time.seconds;
    time.speedup_over_synceasgd = synceasgd / time.seconds;
  }
  return all;
}

}  // namespace gradcube::control::training
