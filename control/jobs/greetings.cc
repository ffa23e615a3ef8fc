#include "control/jobs/greetings.h"

#include <algorithm>
#include <utility>

namespace gradcube::control {

void Greetings::set_peers(const Servers& greeted, const Servers& watched, Instant now) {
  const bool more = std::ranges::any_of(
      greeted, [&](bcube::ServerId server) { return !greeted_.contains(server); });
  if (more) next_ = now;
  greeted_ = {greeted.begin(), greeted.end()};
  const std::set<bcube::ServerId> before =
      std::exchange(watched_, std::set<bcube::ServerId>(watched.begin(), watched.end()));
  for (const bcube::ServerId server : before) {
    if (!watched_.contains(server)) life_.forget(server);
  }
  for (const bcube::ServerId server : watched_) life_.watch(server, now);
}

void Greetings::on_greeting(bcube::ServerId from, const Greeting& greeting, Instant now) {
  Incarnation& known = incarnations_[from];
  const bool restarted = std::exchange(known, greeting.incarnation) != greeting.incarnation;
  heard_[from] = now;
  if (greeting.hears_you || restarted) {
    deaf_.erase(from);
    life_.on_heard(from, now);
  } else {
    deaf_.insert(from);
  }
}

void Greetings::on_sign_of_life(bcube::ServerId from, Instant now) {
  heard_[from] = now;
  if (!deaf_.contains(from)) life_.on_heard(from, now);
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
  for (const bcube::ServerId server : life_.take_silent(now)) silent.push_back(server);
}

std::optional<Instant> Greetings::deadline() const {
  return greeted_.empty() ? life_.deadline() : earlier(life_.deadline(), next_);
}

std::optional<Instant> Greetings::last_heard(bcube::ServerId server) const {
  const auto found = heard_.find(server);
  if (found == heard_.end()) return std::nullopt;
  return found->second;
}

}  // namespace gradcube::control
