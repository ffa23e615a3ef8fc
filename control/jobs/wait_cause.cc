#include "control/jobs/wait_cause.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "control/jobs/collective_text.h"

namespace gradcube::control {
namespace {

// A handful of resends, or one for ten segments that arrive, says nothing about a link.
constexpr std::uint64_t kFewResends = 8;

bool loses(const PeerFacts& peer) {
  return peer.resent > kFewResends && peer.resent * 10 > peer.acknowledged;
}

std::uint64_t of_lane(const LaneNumbers& numbers, unsigned lane) {
  return lane < numbers.size() ? numbers[lane] : 0;
}

std::string with_ports(const std::string& cause, bcube::ServerId server,
                       const PortsSay& ports_say) {
  const std::string said = ports_say ? ports_say(server) : "";
  return said.empty() ? cause : cause + "; " + said;
}

// The daemon that has said nothing for longest, or one that has not answered.
std::optional<std::string> mute_daemon(const std::vector<PeerFacts>& peers, Instant silent,
                                       const bcube::AddressSpace& space,
                                       const PortsSay& ports_say) {
  const PeerFacts* mute = nullptr;
  const PeerFacts* unanswered = nullptr;
  for (const PeerFacts& peer : peers) {
    if (peer.since_heard >= silent) {
      if (mute == nullptr || peer.since_heard > mute->since_heard) mute = &peer;
    } else if (!peer.standing.answered && unanswered == nullptr) {
      unanswered = &peer;
    }
  }
  if (mute != nullptr) {
    const auto heard = std::chrono::duration_cast<std::chrono::milliseconds>(mute->since_heard);
    return with_ports(silent_daemon(mute->standing.server, fmt::format(" for {} ms", heard.count()),
                                    mute->no_way, space),
                      mute->standing.server, ports_say);
  }
  if (unanswered != nullptr) {
    return fmt::format("the daemon on server {} has not answered in time",
                       space.text(unanswered->standing.server));
  }
  return std::nullopt;
}

std::optional<std::string> cut_off_servers(const std::vector<PeerFacts>& peers,
                                           const bcube::AddressSpace& space,
                                           const PortsSay& ports_say) {
  const auto cut_off = static_cast<std::size_t>(std::count_if(
      peers.begin(), peers.end(), [](const PeerFacts& peer) { return peer.cut_off; }));
  const bool names_cut_off = cut_off != 0 && cut_off != peers.size();
  std::vector<std::string> servers;
  std::optional<bcube::ServerId> first;
  for (const PeerFacts& peer : peers) {
    if (names_cut_off ? !peer.cut_off : !peer.no_way) continue;
    servers.push_back(space.text(peer.standing.server));
    if (!first) first = peer.standing.server;
  }
  if (!first) return std::nullopt;
  return with_ports(
      fmt::format("links are down, and no other way leads to {}", fmt::join(servers, ", ")), *first,
      ports_say);
}

std::optional<std::string> lossy_link(const std::vector<PeerFacts>& peers,
                                      const bcube::AddressSpace& space) {
  const PeerFacts* lossy = nullptr;
  for (const PeerFacts& peer : peers) {
    if (loses(peer) && (lossy == nullptr || peer.resent > lossy->resent)) lossy = &peer;
  }
  if (lossy == nullptr) return std::nullopt;
  return fmt::format(
      "the link to server {} loses segments: {} resent, {} acknowledged since the wait began",
      space.text(lossy->standing.server), lossy->resent, lossy->acknowledged);
}

}  // namespace

std::string silent_daemon(bcube::ServerId server, const std::string& for_how_long, bool no_way,
                          const bcube::AddressSpace& space) {
  return fmt::format("nothing is heard of the daemon on server {}{}{}", space.text(server),
                     for_how_long, no_way ? ": links are down, and no other way leads there" : "");
}

std::string explain_wait(const std::string& job, std::size_t lanes,
                         const std::vector<PeerFacts>& peers, CollectiveName collective,
                         Instant silent, const bcube::AddressSpace& space,
                         std::size_t trainers_per_server, const PortsSay& ports_say) {
  const std::string name = collective_text(job, lanes, collective);
  if (const auto mute = mute_daemon(peers, silent, space, ports_say); mute.has_value()) {
    return fmt::format("{} waits: {}", name, *mute);
  }
  const bool is_message = collective.number == kMessageNumber;
  std::vector<std::string> late;
  std::vector<std::string> at_work;
  for (const PeerFacts& peer : peers) {
    const std::string server = space.text(peer.standing.server);
    if (of_lane(peer.standing.published, collective.lane) < collective.number) {
      late.push_back(fmt::format("{} (pid {})", server, peer.standing.pid));
    } else if (is_message ||
               of_lane(peer.standing.completed, collective.lane) < collective.number) {
      at_work.push_back(server);
    }
  }
  if (!late.empty()) {
    return fmt::format("{} waits for trainers that have not submitted it: {}", name,
                       fmt::join(late, ", "));
  }
  if (!at_work.empty()) {
    const auto cut_off = cut_off_servers(peers, space, ports_say);
    if (cut_off.has_value()) return fmt::format("{} waits: {}", name, *cut_off);
  }
  if (const auto lossy = lossy_link(peers, space); lossy.has_value() && !at_work.empty()) {
    return fmt::format("{} waits: {}", name, *lossy);
  }
  if (is_message) {
    return name + " waits until the other trainer submits its part, or is under way";
  }
  if (at_work.empty()) return name + " has just ended";
  return fmt::format("all {} trainers have submitted {}; it is under way at {}",
                     peers.size() * trainers_per_server, name, fmt::join(at_work, " "));
}

}  // namespace gradcube::control
