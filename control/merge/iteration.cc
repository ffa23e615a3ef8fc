#include "control/merge/iteration.h"

#include <algorithm>

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

std::vector<MessageTimes> times(const Iteration& iteration, const std::vector<Message>& messages) {
  const std::vector<double> ready = ready_seconds(iteration);
  std::vector<MessageTimes> all;
  all.reserve(messages.size());
  double before = 0;
  for (const Message& message : messages) {
    std::uint64_t bytes = 0;
    for (std::size_t l = message.first; l <= message.last; ++l) bytes += iteration.layers[l].bytes;
    const double begin = std::max(before, ready[message.first]);
    before = end_seconds(iteration.cost, bytes, ready[message.first], before);
    all.push_back({.ready = ready[message.first], .begin = begin, .end = before});
  }
  return all;
}

double iteration_seconds(const Iteration& iteration, const std::vector<Message>& messages) {
  return times(iteration, messages).back().end;
}

double computing_seconds(const Iteration& iteration) { return ready_seconds(iteration).front(); }

}  // namespace gradcube::control::merge
