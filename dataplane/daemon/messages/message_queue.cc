#include "dataplane/daemon/messages/message_queue.h"

#include <algorithm>

namespace gradcube::dataplane {

bool MessageQueue::hits(double probability) {
  return probability > 0 && static_cast<double>(random_.next() >> 11) * 0x1p-53 < probability;
}

control::Instant MessageQueue::delay() {
  if (faults_.longest_delay.count() == 0) return {};
  return control::Instant(static_cast<std::int64_t>(
      random_.below(static_cast<std::uint64_t>(faults_.longest_delay.count()))));
}

void MessageQueue::send(const control::NodeMessage& message, control::Instant now) {
  for (unsigned copies = hits(faults_.duplicate) ? 2 : 1; copies > 0; --copies) {
    if (cuts_.contains({message.from, message.to}) || hits(faults_.loss)) continue;
    due_.emplace(now + delay(), message);
  }
}

MessageQueue::Due::const_iterator MessageQueue::first() const {
  return std::find_if(due_.begin(), due_.end(),
                      [this](const auto& each) { return !stopped_.contains(each.second.to); });
}

std::optional<control::NodeMessage> MessageQueue::take(control::Instant now) {
  const auto found = first();
  if (found == due_.end() || found->first > now) return std::nullopt;
  control::NodeMessage message = found->second;
  due_.erase(found);
  return message;
}

std::optional<control::Instant> MessageQueue::next() const {
  const auto found = first();
  if (found == due_.end()) return std::nullopt;
  return found->first;
}

}  // namespace gradcube::dataplane
