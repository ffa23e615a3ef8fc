#include "dataplane/fabric/udp/udp_peers.h"

#include <algorithm>
#include <cassert>

#include "dataplane/fabric/frame_fields.h"

namespace gradcube::dataplane {

namespace {

// By a whole frame, of which this is the begin.
UdpPeers::OuterHeaders headers_between(const bcube::LinkAddress& from,
                                       const bcube::LinkAddress& to) {
  std::array<std::uint8_t, protocol::kMaxHeaderBytes> frame{};
  protocol::encode_frame(frame, {from.mac, to.mac, from.ip, to.ip}, {}, {}, nullptr);
  UdpPeers::OuterHeaders headers;
  std::copy_n(frame.begin(), headers.size(), headers.begin());
  return headers;
}

template <typename Index, typename Key>
std::uint16_t place_of(const Index& index, const Key& key) {
  const auto found =
      std::lower_bound(index.begin(), index.end(), key,
                       [](const auto& entry, const Key& wanted) { return entry.first < wanted; });
  return found == index.end() || found->first != key ? UdpPeers::kNone : found->second;
}

}  // namespace

UdpPeers::UdpPeers(const bcube::LinkAddress& own, const std::vector<UdpPeer>& peers) {
  assert(peers.size() < kNone);
  for (const UdpPeer& peer : peers) {
    const auto number = static_cast<std::uint16_t>(peers_.size());
    by_mac_.emplace_back(mac_number(peer.link.mac), number);
    by_address_.emplace_back(peer.at, number);
    peers_.push_back({peer.at, socket_address(peer.at), headers_between(peer.link, own)});
  }
  std::sort(by_mac_.begin(), by_mac_.end());
  std::sort(by_address_.begin(), by_address_.end());
}

std::uint16_t UdpPeers::with_mac(std::uint64_t mac) const { return place_of(by_mac_, mac); }

std::uint16_t UdpPeers::at(const control::HostAddress& address) const {
  return place_of(by_address_, address);
}

}  // namespace gradcube::dataplane
