#include "tests/support/message_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/support/chance.h"

namespace gradcube::dataplane {

void MessageQueue::divert(NodeGroup& nodes) {
  nodes.around().diverts = [this](const control::NodeMessage& message, control::Instant now) {
    send(message, now);
    return true;
  };
}

bool MessageQueue::run(NodeGroup& nodes, control::Instant now) {
  bool any = false;
  do {
    while (auto message = take(now)) nodes.messages().push_back(std::move(*message));
    any = nodes.run(now) || any;
  } while (next().value_or(control::Instant::max()) <= now);
  return any;
}

control::Instant MessageQueue::delay() {
  if (faults_.longest_delay.count() == 0) return {};
  return control::Instant(static_cast<std::int64_t>(
      random_.below(static_cast<std::uint64_t>(faults_.longest_delay.count()))));
}

void MessageQueue::send(const control::NodeMessage& message, control::Instant now) {
  for (unsigned copies = hits(random_, faults_.duplicate) ? 2 : 1; copies > 0; --copies) {
    if (cuts_.contains({message.from, message.to}) || hits(random_, faults_.loss)) continue;
    const auto kept = kept_.find(message.to);
    (kept == kept_.end() ? due_ : kept->second).emplace(now + delay(), message);
  }
}

void MessageQueue::stop(bcube::ServerId server) {
  Due& kept = kept_[server];
  for (auto each = due_.begin(); each != due_.end();) {
    const auto next = std::next(each);
    if (each->second.to == server) kept.insert(due_.extract(each));
    each = next;
  }
}

void MessageQueue::go_on(bcube::ServerId server) {
  const auto kept = kept_.find(server);
  if (kept == kept_.end()) return;
  due_.merge(kept->second);
  kept_.erase(kept);
}

bool MessageQueue::empty() const {
  return due_.empty() &&
         std::ranges::all_of(kept_, [](const auto& each) { return each.second.empty(); });
}

std::optional<control::NodeMessage> MessageQueue::take(control::Instant now) {
  const auto first = due_.begin();
  if (first == due_.end() || first->first > now) return std::nullopt;
  return std::move(due_.extract(first).mapped());
}

std::optional<control::Instant> MessageQueue::next() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

}  // namespace gradcube::dataplane
