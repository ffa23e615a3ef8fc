// What a node hears of other nodes and tells them.

#include <algorithm>
#include <utility>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/daemon/node/node.h"

namespace gradcube::dataplane {

void Node::on_message(const control::NodeMessage& message, control::Instant now) {
  if (message.to != server_) return;
  control::NodeMessages replies;
  const bool admitted = introductions_.admits(message, now, replies);
  send_all(replies, now);
  if (!admitted) return;
  jobs_.on_heard(message.from, message.sender, now, actions_);
  if (const auto* greeting = std::get_if<control::Greeting>(&message.body)) {
    greetings_.on_greeting(message.from, *greeting, now);
    return;
  }
  const auto* told = std::get_if<control::JobMessage>(&message.body);
  const bool of_status = std::holds_alternative<control::StatusAsk>(message.body) ||
                         std::holds_alternative<control::StatusPart>(message.body);
  if (told == nullptr && !of_status) return on_hub_message(message, now);
  if (told == nullptr) {
    if (around_.status) around_.status(message, now);
    return;
  }
  greetings_.on_sign_of_life(message.from, now);
  jobs_.on_message(*told, now, actions_);
  stirred_ = true;
}

void Node::send(control::NodeMessage message, control::Instant now) {
  message.sender = incarnation_;
  if (around_.diverts && around_.diverts(message, now)) return;
  around_.messages.push_back(std::move(message));
}

void Node::send_all(const control::NodeMessages& messages, control::Instant now) {
  for (const control::NodeMessage& message : messages) send(message, now);
}

void Node::carry(const control::NodeMessage& message) {
  if (courier_ != nullptr) courier_->send(message);
}

bool Node::take_messages(control::Instant now) {
  if (courier_ == nullptr) return false;
  bool any = false;
  // However fast frames come, the rest of the control thread's work has its turn.
  unsigned frames = MessageInbox::kCapacity;
  for (; const auto message = courier_->receive(now, frames); any = true) on_message(*message, now);
  control::NodeMessages challenges;
  introductions_.challenge_strangers(now, challenges);
  send_all(challenges, now);
  return any;
}

void Node::send_carried() {
  if (courier_ != nullptr) courier_->flush();
}

void Node::greet(control::Instant now) {
  listen_to_neighbours(now);
  std::vector<control::NodeMessage> out;
  std::vector<bcube::ServerId> silent;
  greetings_.on_time(now, out, silent);
  for (const control::NodeMessage& message : out) {
    // Others wait for a sign of life, whatever else there is to be done here.
    if (around_.here.contains(message.to)) {
      send(message, now);
    } else {
      carry(message);
    }
  }
  for (const bcube::ServerId server : silent) {
    jobs_.on_server_silent(server, !engines_->reaches(server), now, actions_);
  }
}

// Frames that have come from a neighbour since the last look are a sign of its life.
void Node::listen_to_neighbours(control::Instant now) {
  for (auto& [server, heard] : heard_) {
    const std::uint64_t received = neighbour(server).received;
    if (received != std::exchange(heard, received)) greetings_.on_sign_of_life(server, now);
  }
}

void Node::set_peers(control::Instant now) {
  Phases phases;
  for (const auto& [attempt, agent] : jobs_.agents()) phases.emplace_back(attempt, agent.phase());
  if (phases == phases_) return;
  phases_ = std::move(phases);
  const auto greeted = without_those_here(jobs_.greeted());
  greetings_.set_peers(greeted, without_those_here(jobs_.watched()), now);
  std::erase_if(
      heard_, [&](const auto& entry) { return !std::ranges::binary_search(greeted, entry.first); });
  for (const bcube::ServerId server : greeted) {
    if (!bcube::are_neighbours(space(), server_, server)) continue;
    heard_.try_emplace(server, neighbour(server).received);
  }
}

std::vector<bcube::ServerId> Node::without_those_here(std::vector<bcube::ServerId> servers) const {
  if (!around_.greet_each_other) {
    std::erase_if(servers,
                  [this](bcube::ServerId server) { return around_.here.contains(server); });
  }
  return servers;
}

// Of a server that is a neighbour.
NeighbourNumbers Node::neighbour(bcube::ServerId server) const {
  NeighbourNumbers sum;
  for (unsigned level = 0; level < space().levels(); ++level) {
    if (space().digit(server, level) == space().digit(server_, level)) continue;
    for (unsigned rail = 0; rail < space().rails(server_, server); ++rail) {
      sum +=
          engines_->neighbour({static_cast<std::uint8_t>(level),
                               static_cast<std::uint8_t>(space().hop_digit(server, level, rail))});
    }
  }
  return sum;
}

}  // namespace gradcube::dataplane
