#include "dataplane/hub/hub_board.h"

namespace gradcube::dataplane {

HubBoard::HubBoard(std::size_t keys, unsigned trainers, std::size_t executors)
    : trainers_(trainers), keys_(keys), requests_(keys * trainers), pushed_(keys) {
  for (std::size_t i = 0; i < executors; ++i) executors_.emplace_back(pushed_, keys);
}

void HubBoard::push(std::uint32_t number, unsigned local, const Push& push) {
  Key& key = keys_[number];
  if (key.arrived == 0) {
    key.push.kind = push.kind;
    key.push.plane = push.plane;
    key.push.learning_rate = push.learning_rate;
    key.push.digest = push.digest;
  } else if (key.push.kind != push.kind || key.push.plane != push.plane ||
             key.push.learning_rate != push.learning_rate || key.push.digest != push.digest) {
    key.differs = true;
    if (!disagreement_.has_value()) disagreement_ = number;
  }
  key.push.buffers[local] = push.buffer;
  if (local == 0) {
    key.push.steps = push.steps;
    key.push.arrays = push.arrays;
  }
  requests_[place(number, local)] = push.request;
  key.pushers |= bit_of(local);
  ++in_flight_;
  if (++key.arrived < trainers_ || key.differs) return;
  key.executors_left = executors_.size();
  pushed_.tell(number);
}

std::optional<unsigned> HubBoard::latest(std::uint32_t number) const {
  const Key& key = keys_[number];
  if (key.arrived == 0 || key.arrived == trainers_) return std::nullopt;
  for (unsigned local = 0; local < trainers_; ++local) {
    if (may_push(number, local)) return local;
  }
  return std::nullopt;
}

std::uint64_t HubBoard::needs(std::size_t keys, unsigned trainers, std::size_t executors) {
  return keys * (sizeof(Key) + trainers * sizeof(std::uint64_t) + executors * sizeof(double) +
                 (executors + 1) * sizeof(std::uint32_t));
}

}  // namespace gradcube::dataplane
