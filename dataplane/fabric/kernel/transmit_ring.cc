#include "dataplane/fabric/kernel/transmit_ring.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

#include "dataplane/fabric/kernel/ring_slot.h"

namespace gradcube::dataplane {

namespace {

// Where the kernel looks for a frame: at the place of the address that received frames have.
constexpr std::size_t kFrameAt = TPACKET2_HDRLEN - sizeof(sockaddr_ll);

}  // namespace

std::uint32_t TransmitRing::room() const {
  while (used_ != 0 && slot_status(slots_[before_head(used_)]) == TP_STATUS_AVAILABLE) --used_;
  return static_cast<std::uint32_t>(slots_.size()) - used_;
}

void TransmitRing::put(const rte_mbuf* packet) {
  std::byte* slot = slots_[head_];
  std::byte* at = slot + kFrameAt;
  for (const rte_mbuf* segment = packet; segment != nullptr; segment = segment->next) {
    std::memcpy(at, rte_pktmbuf_mtod(segment, const std::byte*), segment->data_len);
    at += segment->data_len;
  }
  slot_header(slot).tp_len = packet->pkt_len;
  set_slot_status(slot, TP_STATUS_SEND_REQUEST);
  head_ = head_ + 1 == slots_.size() ? 0 : head_ + 1;
  ++used_;
  ++unsent_;
}

TransmitRing::Kick TransmitRing::kick() {
  Kick kick;
  bool again = true;
  while (again && unsent_ != 0) {
    kick.error = send(socket_, nullptr, 0, MSG_DONTWAIT) < 0 ? errno : 0;
    const auto taken = [](std::uint32_t status) {
      return (status & (TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT)) == 0;
    };
    while (unsent_ != 0 && taken(slot_status(slots_[before_head(unsent_)]))) --unsent_;
    again = unsent_ != 0 && drop_refused();
    if (again) ++kick.refused;
  }
  return kick;
}

// True if the kernel has refused the oldest unsent frame.
bool TransmitRing::drop_refused() {
  std::byte* refused = slots_[before_head(unsent_)];
  if ((slot_status(refused) & TP_STATUS_WRONG_FORMAT) == 0) return false;
  head_ = before_head(1);
  --used_;
  --unsent_;
  std::byte* newest = slots_[head_];
  if (newest != refused) {
    const std::uint32_t bytes = slot_header(newest).tp_len;
    slot_header(refused).tp_len = bytes;
    std::memcpy(refused + kFrameAt, newest + kFrameAt, bytes);
    set_slot_status(refused, TP_STATUS_SEND_REQUEST);
  }
  set_slot_status(newest, TP_STATUS_AVAILABLE);
  return true;
}

}  // namespace gradcube::dataplane
