#include "control/merge/policies.h"

#include <algorithm>
#include <tuple>

namespace gradcube::control::merge {
namespace {

std::vector<Message> wfbp(std::size_t layers) {
  std::vector<Message> messages;
  for (std::size_t l = layers; l-- > 0;) messages.push_back({.first = l, .last = l});
  return messages;
}

// Algorithm 1, in its names. Index 0 of its arrays is the end of the backward pass.
class Algorithm1 {
 public:
  explicit Algorithm1(const Iteration& iteration)
      : cost_(iteration.cost),
        L_(iteration.layers.size()),
        p_(L_ + 1),
        tb_(L_ + 1),
        tc_(L_ + 1),
        tau_b_(L_ + 1),
        tau_c_(L_ + 1) {
    for (std::size_t l = 1; l <= L_; ++l) {
      p_[l] = iteration.layers[l - 1].bytes;
      tb_[l] = iteration.layers[l - 1].backward_seconds;
      tc_[l] = cost_.seconds(static_cast<double>(p_[l]));
    }
    tau_b_[L_] = iteration.forward_seconds;
    for (std::size_t l = L_; l-- > 0;) tau_b_[l] = tau_b_[l + 1] + tb_[l + 1];
    calculate_comm_start();
  }

  std::vector<Message> messages() {
    std::vector<Message> messages;
    std::size_t last = L_;
    for (std::size_t l = L_; l >= 2; --l) {
      if (tau_b_[l - 2] - tau_c_[l] < cost_.a) {
        merge(l);
        calculate_comm_start();
      } else {
        messages.push_back({.first = l - 1, .last = last - 1});
        last = l - 1;
      }
    }
    messages.push_back({.first = 0, .last = last - 1});
    return messages;
  }

 private:
  void merge(std::size_t l) {
    tc_[l] = 0;
    p_[l - 1] += p_[l];
    tc_[l - 1] = cost_.seconds(static_cast<double>(p_[l - 1]));
  }

  void calculate_comm_start() {
    tau_c_[L_] = tau_b_[L_] + tb_[L_];
    for (std::size_t l = L_ - 1; l >= 1; --l) {
      tau_c_[l] = std::max(tau_c_[l + 1] + tc_[l + 1], tau_b_[l] + tb_[l]);
    }
  }

  model::AllReduceCost cost_;
  std::size_t L_;
  std::vector<std::uint64_t> p_;
  std::vector<double> tb_;
  std::vector<double> tc_;
  std::vector<double> tau_b_;
  std::vector<double> tau_c_;
};

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

std::string_view name_of(Policy policy) {
  switch (policy) {
    case Policy::wfbp:
      return "wfbp";
    case Policy::synceasgd:
      return "synceasgd";
    case Policy::mgwfbp:
      return "mgwfbp";
    case Policy::optimal:
      break;
  }
  return "optimal";
}

std::vector<Message> messages_of(Policy policy, const Iteration& iteration) {
  switch (policy) {
    case Policy::wfbp:
      return wfbp(iteration.layers.size());
    case Policy::synceasgd:
      return {{.first = 0, .last = iteration.layers.size() - 1}};
    case Policy::mgwfbp:
      return Algorithm1(iteration).messages();
    case Policy::optimal:
      break;
  }
  return optimal(iteration);
}

}  // namespace gradcube::control::merge
