#include "control/jobs/wait_cause.h"

#include <algorithm>
#include <fmt/format.h>

namespace gradcube::control {
namespace {

constexpr std::size_t kMostNamed = 8;
// A handful of resends, or one for ten segments that arrive, says nothing about a link.
constexpr std::uint64_t kFewResends = 8;

bool loses(const PeerFacts& peer) {
  return peer.resent > kFewResends && peer.resent * 10 > peer.acknowledged;
}

}  // namespace

std::string explain_wait(const std::vector<PeerFacts>& peers, std::uint64_t collective,
                         Instant silent, const bcube::AddressSpace& space) {
  const PeerFacts* mute = nullptr;
  const PeerFacts* lossy = nullptr;
  std::string trainers;
  std::size_t idle = 0;
  for (const PeerFacts& peer : peers) {
    if (peer.since_heard >= silent) {
      if (mute == nullptr || peer.since_heard > mute->since_heard) mute = &peer;
    } else if (loses(peer)) {
      if (lossy == nullptr || peer.resent > lossy->resent) lossy = &peer;
    } else if (peer.submitted < collective) {
      if (idle < kMostNamed) {
        trainers += fmt::format("{}{}", idle == 0 ? "" : ", ", space.text(peer.server));
      }
      ++idle;
    }
  }
  if (mute != nullptr) {
    const auto heard = std::chrono::duration_cast<std::chrono::milliseconds>(mute->since_heard);
    return fmt::format("nothing is heard of the daemon on server {} for {} ms",
                       space.text(mute->server), heard.count());
  }
  if (lossy != nullptr) {
    return fmt::format(
        "the link to server {} loses segments: {} resent, {} acknowledged since the wait began",
        space.text(lossy->server), lossy->resent, lossy->acknowledged);
  }
  if (idle > 0) {
    if (idle > kMostNamed) trainers += fmt::format(" and {} more", idle - kMostNamed);
    return fmt::format("the trainer{} on server{} {} {} not called collective {} yet",
                       idle == 1 ? "" : "s", idle == 1 ? "" : "s", trainers,
                       idle == 1 ? "has" : "have", collective);
  }
  return fmt::format("all trainers have called collective {}; it is under way", collective);
}

}  // namespace gradcube::control
