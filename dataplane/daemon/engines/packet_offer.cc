#include "dataplane/daemon/engines/packet_offer.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/units.h"
#include "dataplane/daemon/trainers/trainer_channel.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

bool has_room(const PacketShare& share, std::uint64_t segments, bool least) {
  if (segments > PayloadPackets::kMost) return false;
  return segments <= (least ? share.free() : share.free() / 2);
}

// As --packet-memory takes it.
std::string size_text(std::uint64_t bytes) { return control::format_size(bytes / 1000 * 1000); }

[[noreturn]] void refuse(const std::string& job, const std::string& server, std::uint32_t flows,
                         unsigned window, const PacketShare& share) {
  const std::uint64_t segments = std::uint64_t{flows} * window;
  if (segments > PayloadPackets::kMost) {
    throw JoinRefused(
        GRADCUBE_EJOB,
        fmt::format("job \"{}\": {} flows of an engine on server {}: with a window of {} segments "
                    "expected at most {}; ask for fewer lanes",
                    job, flows, server, window, PayloadPackets::kMost / window));
  }
  throw JoinRefused(
      GRADCUBE_EJOB,
      fmt::format(
          "job \"{}\" needs {} of packet memory on server {} even with the least window of {} "
          "segments, and {} of {} is free: expected that other jobs end first, fewer lanes, or "
          "a cluster with more (gradcube up --packet-memory)",
          job, size_text(segments * share.bytes_of_segment()), server, window,
          size_text(share.free() * share.bytes_of_segment()),
          size_text(share.most() * share.bytes_of_segment())));
}

}  // namespace

PacketOffer offer_packets(const std::string& job, const std::string& server,
                          const std::vector<std::uint32_t>& flows, const NodeEngines& engines) {
  const std::vector<EngineAt>& all = engines.all();
  if (all.empty()) return {};
  const unsigned full = all.front().engine->settings().window;
  const unsigned least = std::min(full, kLeastWindow);
  // The first engine without room for the window; their number if there is none.
  const auto without_room = [&](unsigned window) {
    std::size_t i = 0;
    while (i < all.size() &&
           has_room(*all[i].packets, std::uint64_t{flows[i]} * window, window == least)) {
      ++i;
    }
    return i;
  };
  unsigned window = full;
  for (std::size_t lacks = without_room(full); lacks != all.size(); lacks = without_room(window)) {
    if (window == least) refuse(job, server, flows[lacks], least, *all[lacks].packets);
    window = std::max(window / 2, least);
  }
  PacketOffer offer{window, flows, {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    offer.reserved.push_back(*all[i].packets->reserve(flows[i] * window));
  }
  return offer;
}

}  // namespace gradcube::dataplane
