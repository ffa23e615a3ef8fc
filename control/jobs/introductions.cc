#include "control/jobs/introductions.h"

#include <variant>

namespace gradcube::control {

bool Introductions::admits(const NodeMessage& message, Instant now, NodeMessages& out) {
  // Asked by a stranger, too: both may have been restarted.
  if (const auto* challenge = std::get_if<Challenge>(&message.body)) {
    out.push_back({server_, message.from, Response{challenge->nonce}});
    return false;
  }
  if (message.sender == 0) return false;
  if (const auto* response = std::get_if<Response>(&message.body)) {
    const auto asked = asked_.find(message.from);
    if (asked == asked_.end() || asked->second.nonce != response->nonce) return false;
    speakers_[message.from] = message.sender;
    asked->second.nonce.reset();
    return false;
  }
  if (speakers_.try_emplace(message.from, message.sender).first->second == message.sender) {
    return true;
  }
  Asked& asked = asked_.try_emplace(message.from, Asked{{}, now}).first->second;
  if (now < asked.again) return false;
  if (!asked.nonce.has_value()) asked.nonce = nonces_();
  asked.again = now + kChallengeInterval;
  out.push_back({server_, message.from, Challenge{*asked.nonce}});
  return false;
}

Incarnation Introductions::speaker(bcube::ServerId server) const {
  const auto known = speakers_.find(server);
  return known == speakers_.end() ? 0 : known->second;
}

}  // namespace gradcube::control
