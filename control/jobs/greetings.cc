#include "control/jobs/greetings.h"

#include <algorithm>
#include <utility>

namespace gradcube::control {

void Greetings::set_peers(const Servers& greeted, const Servers& watched, Instant now) {
  const bool more = std::ranges::any_of(
      greeted, [&](bcube::ServerId server) { return !greeted_.contains(server); });
  if (more) next_ = now;
  greeted_ = {greeted.begin(), greeted.end()};
  std::erase_if(due_, [&](const auto& known) {
    return !std::binary_search(watched.begin(), watched.end(), known.first);
  });
  // Who is watched already keeps its time.
  for (const bcube::ServerId server : watched) due_.try_emplace(server, now + timing_.silent_after);
}

void Greetings::on_greeting(bcube::ServerId from, const Greeting& greeting, Instant now) {
  Incarnation& known = incarnations_[from];
  const bool restarted = std::exchange(known, greeting.incarnation) != greeting.incarnation;
  heard_[from] = now;
  if (greeting.hears_you || restarted) {
    deaf_.erase(from);
    on_life(from, now);
  } else {
    deaf_.insert(from);
  }
}

void Greetings::on_sign_of_life(bcube::ServerId from, Instant now) {
  heard_[from] = now;
  if (!deaf_.contains(from)) on_life(from, now);
}

void Greetings::on_life(bcube::ServerId from, Instant now) {
  const auto watched = due_.find(from);
  if (watched == due_.end()) return;
  watched->second = std::max(watched->second, now + timing_.silent_after);
}

void Greetings::on_time(Instant now, std::vector<NodeMessage>& messages, Servers& silent) {
  if (!greeted_.empty() && now >= next_) {
    for (const bcube::ServerId server : greeted_) {
      const std::optional<Instant> heard = last_heard(server);
      const bool hears = heard.has_value() && now - *heard < timing_.silent_after;
      messages.push_back({server_, server, Greeting{incarnation_, hears}});
    }
    next_ = now + timing_.interval;
  }
  for (auto& [server, due] : due_) {
    if (now < due) continue;
    due = now + timing_.silent_after;
    silent.push_back(server);
  }
}

std::optional<Instant> Greetings::deadline() const {
  std::optional<Instant> first;
  if (!greeted_.empty()) first = next_;
  for (const auto& [server, due] : due_) first = earlier(first, due);
  return first;
}

std::optional<Instant> Greetings::last_heard(bcube::ServerId server) const {
  const auto found = heard_.find(server);
  if (found == heard_.end()) return std::nullopt;
  return found->second;
}

}  // namespace gradcube::control
