#include "dataplane/fabric/udp/datagram_trains.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/udp.h>

namespace gradcube::dataplane {

namespace {

// What IPv4 and IPv6 leave for a datagram before it is cut.
constexpr std::uint32_t kMostTrainBytes = 65'000;

bool is_full(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

cmsghdr* write_item(cmsghdr* item, int level, int type, const void* value, std::size_t bytes) {
  item->cmsg_level = level;
  item->cmsg_type = type;
  item->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(item), value, bytes);
  return reinterpret_cast<cmsghdr*>(reinterpret_cast<std::byte*>(item) + CMSG_SPACE(bytes));
}

}  // namespace

DatagramTrains::DatagramTrains(int socket, const UdpPeers& peers)
    : socket_(socket), peers_(peers), open_(peers.size(), kNone) {}

DatagramTrains::~DatagramTrains() {
  for (unsigned i = 0; i < count_; ++i) rte_pktmbuf_free(frames_[i].packet);
}

void DatagramTrains::add(rte_mbuf* frame, std::uint16_t peer) {
  std::memcpy(rte_pktmbuf_mtod_offset(frame, char*, kDatagramAt),
              rte_pktmbuf_mtod_offset(frame, const char*, kSourcePortAt), sizeof(std::uint16_t));
  frames_[count_++] = {frame, peer, kNone};
}

DatagramTrains::Outcome DatagramTrains::send() {
  Outcome outcome;
  longest_now_ = longest_train_;
  while (count_ != 0 && send_trains(outcome)) {
  }
  return outcome;
}

// True if what is left may go in another form at once.
bool DatagramTrains::send_trains(Outcome& outcome) {
  couple();
  write_messages();
  unsigned done = 0;
  bool again = false;
  while (done < train_count_ && !again) {
    const int sent = sendmmsg(socket_, &messages_[done], train_count_ - done, MSG_DONTWAIT);
    const int error = sent > 0 ? 0 : errno;
    for (int i = 0; i < sent; ++i, ++done) {
      outcome.sent = static_cast<std::uint16_t>(outcome.sent + trains_[done].frames);
      outcome.bytes += trains_[done].bytes + std::uint64_t{kDatagramAt} * trains_[done].frames;
      release(trains_[done]);
    }
    if (error == 0 || error == EINTR) continue;
    if (is_full(error)) break;
    again = !refuse(done, error, outcome);
    if (!again) ++done;
  }
  keep_from(done);
  return again;
}

// False if its frames may pass one by one.
bool DatagramTrains::refuse(unsigned train, int error, Outcome& outcome) {
  const Train& refused = trains_[train];
  const bool is_of_train = error == EIO || error == EINVAL || error == EMSGSIZE;
  if (is_of_train && refused.frames > 1) {
    longest_now_ = 1;
    if (error == EIO) longest_train_ = 1;
    return false;
  }
  std::uint16_t& count = error == EMSGSIZE ? outcome.too_long : outcome.failed;
  count = static_cast<std::uint16_t>(count + refused.frames);
  outcome.error = error;
  outcome.peer = refused.peer;
  release(refused);
  return true;
}

void DatagramTrains::couple() {
  train_count_ = 0;
  std::fill(open_.begin(), open_.end(), kNone);
  for (std::uint16_t i = 0; i < count_; ++i) {
    frames_[i].next = kNone;
    const Train alone = train_of(i);
    std::uint16_t& open = open_[alone.peer];
    if (open == kNone || !fits(trains_[open], alone)) {
      open = static_cast<std::uint16_t>(train_count_);
      trains_[train_count_++] = alone;
      continue;
    }
    Train& train = trains_[open];
    frames_[train.last].next = i;
    train.last = i;
    ++train.frames;
    train.bytes += alone.bytes;
    if (alone.bytes < train.each) open = kNone;
  }
}

// With no other frame.
DatagramTrains::Train DatagramTrains::train_of(std::uint16_t frame) const {
  const rte_mbuf* packet = frames_[frame].packet;
  const std::uint32_t bytes = packet->pkt_len - kDatagramAt;
  return {.first = frame,
          .last = frame,
          .frames = 1,
          .peer = frames_[frame].peer,
          .each = bytes,
          .bytes = bytes,
          .source_port = field16(packet, kSourcePortAt),
          .marks = static_cast<std::uint8_t>(
              *rte_pktmbuf_mtod_offset(packet, const std::uint8_t*, kTosAt) & kEcnBits)};
}

bool DatagramTrains::fits(const Train& train, const Train& frame) const {
  return frame.bytes <= train.each && frame.marks == train.marks &&
         frame.source_port == train.source_port && train.frames < longest_now_ &&
         train.bytes + frame.bytes <= kMostTrainBytes;
}

void DatagramTrains::write_messages() {
  std::size_t part = 0;
  for (unsigned i = 0; i < train_count_; ++i) {
    const Train& train = trains_[i];
    const SocketAddress& to = peers_.socket(train.peer);
    msghdr& message = messages_[i].msg_hdr;
    message = {};
    message.msg_name = const_cast<sockaddr*>(&to.any);
    message.msg_namelen = bytes_of(to);
    message.msg_iov = &parts_[part];
    for (std::uint16_t at = train.first; at != kNone; at = frames_[at].next) {
      std::uint32_t before = kDatagramAt;
      for (rte_mbuf* piece = frames_[at].packet; piece != nullptr; piece = piece->next) {
        parts_[part++] = {rte_pktmbuf_mtod_offset(piece, void*, before), piece->data_len - before};
        before = 0;
      }
    }
    message.msg_iovlen = static_cast<std::size_t>(&parts_[part - 1] - message.msg_iov) + 1;
    write_control(train, controls_[i], message);
  }
}

void DatagramTrains::write_control(const Train& train, Control& control, msghdr& message) const {
  auto* const first = reinterpret_cast<cmsghdr*>(control.bytes);
  cmsghdr* item = first;
  if (train.frames > 1) {
    const auto each = static_cast<std::uint16_t>(train.each);
    item = write_item(item, SOL_UDP, UDP_SEGMENT, &each, sizeof each);
  }
  if (train.marks != kUnderstandsMarks) {
    const bool is_v6 = peers_.socket(train.peer).any.sa_family == AF_INET6;
    const int marks = train.marks;
    item = write_item(item, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_TCLASS : IP_TOS, &marks,
                      sizeof marks);
  }
  message.msg_controllen =
      static_cast<std::size_t>(reinterpret_cast<std::byte*>(item) - control.bytes);
  if (message.msg_controllen != 0) message.msg_control = first;
}

void DatagramTrains::release(const Train& train) {
  for (std::uint16_t at = train.first; at != kNone; at = frames_[at].next) {
    rte_pktmbuf_free(frames_[at].packet);
  }
}

// What trains before this one had is gone.
void DatagramTrains::keep_from(unsigned train) {
  if (train == train_count_) {
    count_ = 0;
    return;
  }
  std::array<Frame, kMostDatagrams> kept{};
  unsigned count = 0;
  for (unsigned i = train; i < train_count_; ++i) {
    for (std::uint16_t at = trains_[i].first; at != kNone; at = frames_[at].next) {
      kept[count++] = frames_[at];
    }
  }
  std::copy_n(kept.begin(), count, frames_.begin());
  count_ = count;
}

}  // namespace gradcube::dataplane
