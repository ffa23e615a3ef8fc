// By which numbers a round is stepped with, and what servers tell each other of them.

#include <bit>
#include <cstring>

#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kMixed = 0x9e3779b97f4a7c15U;

}  // namespace

// Of what differs, one pair in 2^32 has the same digest.
std::uint32_t HubExchange::digest_of(const HubPush& push) const {
  std::uint64_t bits = 0;
  switch (push.kind) {
    case PushKind::gradients: {
      // Where zero has a sign it loses it here: the two are the same rate.
      const double rate = push.learning_rate + 0.0;
      if (context_.rates_are_told) return std::bit_cast<std::uint32_t>(static_cast<float>(rate));
      bits = std::bit_cast<std::uint64_t>(rate);
      break;
    }
    case PushKind::weights:
      bits = push.digest;
      break;
    case PushKind::restored:
      bits = push.steps;
      break;
    case PushKind::applied:
      bits = std::bit_cast<std::uint64_t>(push.learning_rate + 0.0) * kMixed + push.digest;
      break;
    case PushKind::saved:
    case PushKind::accumulated:
      break;
    case PushKind::loaded:
      return static_cast<std::uint32_t>(push.steps);
  }
  return static_cast<std::uint32_t>((bits * kMixed) >> 32);
}

// The optimizer's numbers are those of all chunks of a key.
void HubExchange::count_step(std::uint32_t number) {
  KeyState& key = keys_[number];
  switch (key.push.kind) {
    case PushKind::gradients:
      key.numbers = step_of(number, key.push.learning_rate, ++key.steps);
      break;
    case PushKind::applied:
      if (key.told.scale == 0) break;
      key.numbers = optimizer_step(context_.model.settings_of(number), key.push.learning_rate,
                                   ++key.steps, 1);
      break;
    case PushKind::weights:
      key.steps = 0;
      break;
    case PushKind::restored:
      key.steps = key.push.steps;
      break;
    case PushKind::saved:
    case PushKind::accumulated:
    case PushKind::loaded:  // load_plane() knows them
      break;
  }
}

// The first contribution begins the round: there is no push.
void HubExchange::open_without_trainers(ChunkState& chunk, const std::uint8_t* payload) {
  KeyState& key = keys_[place_of(chunk).key];
  ++chunk.pushes;
  chunk.pushed = true;
  if (chunk.pushes <= key.rounds) {
    // Another chunk of the key was the first. The key's numbers are those that it came with.
    if (chunk.kind != key.push.kind || chunk.plane != key.push.plane ||
        chunk.digest != key.digest) {
      disagree(chunk);
    }
    return;
  }
  key.rounds = chunk.pushes;
  key.push.kind = chunk.kind;
  key.push.plane = chunk.plane;
  key.digest = chunk.digest;
  if (chunk.kind == PushKind::applied) {
    std::memcpy(&key.told, payload, sizeof(key.told));
    key.push.learning_rate = key.told.learning_rate;
  } else {
    key.push.learning_rate = std::bit_cast<float>(chunk.digest);
  }
  count_step(place_of(chunk).key);
}

}  // namespace gradcube::dataplane
