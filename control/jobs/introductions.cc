#include "control/jobs/introductions.h"

#include <utility>
#include <variant>

namespace gradcube::control {

bool Introductions::admits(const NodeMessage& message, Instant now, NodeMessages& out) {
  // Asked by a stranger, too: both may have been restarted, and then each asks the other.
  if (const auto* asked = std::get_if<Challenge>(&message.body)) {
    Said& last = answered_.try_emplace(message.from, Said{asked->nonce, now}).first->second;
    if (last.nonce != asked->nonce || now >= last.again) {
      last = {asked->nonce, now + kAnswerInterval};
      out.push_back({server_, message.from, Response{asked->nonce}});
    }
    if (first_ == First::challenged && speaker(message.from) != message.sender) {
      challenge(message.from, now, out);
    }
    return false;
  }
  if (message.sender == 0) return false;
  if (const auto* response = std::get_if<Response>(&message.body)) {
    const auto asked = asked_.find(message.from);
    if (asked == asked_.end() || asked->second.nonce != response->nonce) return false;
    asked->second.nonce.reset();
    // Of who speaks already an answer may come late: what has come since has come.
    if (speaker(message.from) != message.sender) {
      speakers_[message.from] = {message.sender, ReplayWindow(message.number)};
    }
    return false;
  }
  if (first_ == First::believed) {
    speakers_.try_emplace(message.from, Speaker{message.sender, ReplayWindow()});
  }
  if (speaker(message.from) != message.sender) {
    challenge(message.from, now, out);
    return false;
  }
  if (message.number == 0 || speakers_.at(message.from).messages.take(message.number)) return true;
  ++repeated_;
  return false;
}

void Introductions::challenge(bcube::ServerId server, Instant now, NodeMessages& out) {
  Said& asked = asked_.try_emplace(server, Said{{}, now}).first->second;
  if (now < asked.again) return;
  if (!asked.nonce.has_value()) asked.nonce = nonces_();
  asked.again = now + kChallengeInterval;
  out.push_back({server_, server, Challenge{*asked.nonce}});
}

bool Introductions::may_wait(bcube::ServerId from, Incarnation sender, std::uint64_t number) {
  if (speaker(from) != sender) {
    strangers_.insert(from);
    return false;
  }
  const bool has_come = sender == 0 || speakers_.at(from).messages.has_come(number);
  if (has_come) ++repeated_;
  return !has_come;
}

void Introductions::challenge_strangers(Instant now, NodeMessages& out) {
  for (const bcube::ServerId server : std::exchange(strangers_, {})) challenge(server, now, out);
}

Incarnation Introductions::speaker(bcube::ServerId server) const {
  const auto known = speakers_.find(server);
  return known == speakers_.end() ? 0 : known->second.incarnation;
}

}  // namespace gradcube::control
