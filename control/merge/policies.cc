#include "control/merge/policies.h"

#include <algorithm>
#include <tuple>

namespace gradcube::control::merge {

std::vector<double> ready_seconds(const Iteration& iteration) {
  std::vector<double> ready(iteration.layers.size());
  double now = iteration.forward_seconds;
  for (std::size_t l = ready.size(); l-- > 0;) {
    now += iteration.layers[l].backward_seconds;
    ready[l] = now;
  }
  return ready;
}

double end_seconds(const model::AllReduceCost& cost, std::uint64_t bytes, double ready,
                   double before) {
  return std::max(before, ready) + cost.seconds(static_cast<double>(bytes));
}

namespace {

std::vector<Message> wfbp(std::size_t layers) {
  std::vector<Message> messages;
  for (std::size_t l = layers; l-- > 0;) messages.push_back({.first = l, .last = l});
  return messages;
}

// Algorithm 1, in its names. Index 0 of its arrays is the end of the backward pass.
std::vector<Message> algorithm1(const Iteration& iteration) {
  const std::size_t L = iteration.layers.size();
  std::vector<std::uint64_t> p(L + 1);
  std::vector<double> tb(L + 1);
  std::vector<double> tc(L + 1);
  std::vector<double> tau_b(L + 1);
  std::vector<double> tau_c(L + 1);
  for (std::size_t l = 1; l <= L; ++l) {
    p[l] = iteration.layers[l - 1].bytes;
    tb[l] = iteration.layers[l - 1].backward_seconds;
    tc[l] = iteration.cost.seconds(static_cast<double>(p[l]));
  }
  tau_b[L] = iteration.forward_seconds;
  for (std::size_t l = L; l-- > 0;) tau_b[l] = tau_b[l + 1] + tb[l + 1];
  const auto calculate_comm_start = [&] {
    tau_c[L] = tau_b[L] + tb[L];
    for (std::size_t l = L - 1; l >= 1; --l) {
      tau_c[l] = std::max(tau_c[l + 1] + tc[l + 1], tau_b[l] + tb[l]);
    }
  };
  calculate_comm_start();
  std::vector<Message> messages;
  std::size_t last = L;
  for (std::size_t l = L; l >= 2; --l) {
    if (tau_b[l - 2] - tau_c[l] < iteration.cost.a) {
      tc[l] = 0;  // l goes with l-1
      p[l - 1] += p[l];
      tc[l - 1] = iteration.cost.seconds(static_cast<double>(p[l - 1]));
      calculate_comm_start();
    } else {
      messages.push_back({.first = l - 1, .last = last - 1});
      last = l - 1;
    }
  }
  messages.push_back({.first = 0, .last = last - 1});
  return messages;
}

std::vector<Message> optimal(const Iteration& iteration) {
  // How the layers from one on travel best.
  struct Best {
    double end = 0;
    std::size_t messages = 0;
    std::size_t last = 0;  // of the message with the layer
  };
  const std::size_t layers = iteration.layers.size();
  const std::vector<double> ready = ready_seconds(iteration);
  std::vector<Best> best(layers + 1);
  for (std::size_t l = layers; l-- > 0;) {
    std::uint64_t bytes = 0;
    for (std::size_t m = l; m < layers; ++m) {
      bytes += iteration.layers[m].bytes;
      const Best& above = best[m + 1];
      const double end = end_seconds(iteration.cost, bytes, ready[l], above.end);
      const std::size_t messages = above.messages + 1;
      // The first one is always taken, so that each message has a layer, whatever the times are.
      if (m == l || std::tie(end, messages) < std::tie(best[l].end, best[l].messages)) {
        best[l] = {.end = end, .messages = messages, .last = m};
      }
    }
  }
  std::vector<Message> messages;
  for (std::size_t l = 0; l < layers; l = best[l].last + 1) {
    messages.push_back({.first = l, .last = best[l].last});
  }
  std::reverse(messages.begin(), messages.end());
  return messages;
}

}  // namespace

std::vector<Message> messages_of(Policy policy, const Iteration& iteration) {
  switch (policy) {
    case Policy::wfbp:
      return wfbp(iteration.layers.size());
    case Policy::synceasgd:
      return {{.first = 0, .last = iteration.layers.size() - 1}};
    case Policy::mgwfbp:
      return algorithm1(iteration);
    case Policy::optimal:
      break;
  }
  return optimal(iteration);
}

}  // namespace gradcube::control::merge
