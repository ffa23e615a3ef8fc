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

// What fills up the last datagram of a frame.
constexpr std::array<std::byte, kMostFragments> kFilling{};

cmsghdr* write_item(cmsghdr* item, int level, int type, const void* value, std::size_t bytes) {
  item->cmsg_level = level;
  item->cmsg_type = type;
  item->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(item), value, bytes);
  return reinterpret_cast<cmsghdr*>(reinterpret_cast<std::byte*>(item) + CMSG_SPACE(bytes));
}

}  // namespace

DatagramTrains::DatagramTrains(int socket, const UdpPeers& peers, std::uint32_t most_of_body,
                               unsigned fragments)
    : socket_(socket),
      peers_(peers),
      most_of_body_(most_of_body),
      fragments_(fragments),
      open_(peers.size(), kNone) {}

DatagramTrains::~DatagramTrains() {
  for (unsigned i = 0; i < count_; ++i) {
    if (datagrams_[i].is_last) rte_pktmbuf_free(datagrams_[i].frame);
  }
}

void DatagramTrains::add(rte_mbuf* frame, std::uint16_t peer) {
  const unsigned fragments = fragments_of(frame);
  const std::uint32_t body = frame->pkt_len - kBodyAt;
  const std::uint32_t each = bytes_of_fragment(body, fragments);
  put_field16(frame, kNumberAt, number_++);
  put_field16(frame, kPlaceAt, fragments);  // of the first
  std::array<std::byte, kFragmentHeaderBytes> header;
  std::memcpy(header.data(), rte_pktmbuf_mtod_offset(frame, const void*, kDatagramAt),
              header.size());
  for (unsigned i = 0; i < fragments; ++i) {
    header[kPlaceAt - kDatagramAt] = static_cast<std::byte>(i);
    const std::uint32_t from = i * each;
    datagrams_[count_++] = {.frame = frame,
                            .from = from,
                            .bytes = std::min(each, body - from),
                            .each = kFragmentHeaderBytes + each,
                            .peer = peer,
                            .next = kNone,
                            .is_last = i + 1 == fragments,
                            .is_broken = false,
                            .header = header};
  }
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
      outcome.sent =
          static_cast<std::uint16_t>(outcome.sent + release(trains_[done], outcome.bytes));
    }
    if (error == 0 || error == EINTR) continue;
    if (is_full(error)) break;
    again = !refuse(done, error, outcome);
    if (!again) ++done;
  }
  keep_from(done);
  return again;
}

// False if its datagrams may pass one by one.
bool DatagramTrains::refuse(unsigned train, int error, Outcome& outcome) {
  const Train& refused = trains_[train];
  const bool is_of_train = error == EIO || error == EINVAL || error == EMSGSIZE;
  if (is_of_train && refused.datagrams > 1) {
    longest_now_ = 1;
    if (error == EIO) longest_train_ = 1;
    return false;
  }
  std::uint64_t bytes = 0;
  std::uint16_t& count = error == EMSGSIZE ? outcome.too_long : outcome.failed;
  count = static_cast<std::uint16_t>(count + break_frames(refused));
  release(refused, bytes);
  outcome.error = error;
  outcome.peer = refused.peer;
  return true;
}

void DatagramTrains::couple() {
  train_count_ = 0;
  std::fill(open_.begin(), open_.end(), kNone);
  for (std::uint16_t i = 0; i < count_; ++i) {
    datagrams_[i].next = kNone;
    const Train alone = train_of(i);
    std::uint16_t& open = open_[alone.peer];
    if (open == kNone || !fits(trains_[open], alone)) {
      open = static_cast<std::uint16_t>(train_count_);
      trains_[train_count_++] = alone;
      continue;
    }
    Train& train = trains_[open];
    datagrams_[train.last].next = i;
    train.last = i;
    ++train.datagrams;
    train.bytes += alone.bytes;
    if (alone.bytes < train.each) open = kNone;
  }
}

// With no other datagram.
DatagramTrains::Train DatagramTrains::train_of(std::uint16_t datagram) const {
  const Datagram& own = datagrams_[datagram];
  return {.first = datagram,
          .last = datagram,
          .datagrams = 1,
          .peer = own.peer,
          .each = own.each,
          .bytes = own.each,
          .source_port = field16(own.frame, kSourcePortAt),
          .marks = static_cast<std::uint8_t>(
              *rte_pktmbuf_mtod_offset(own.frame, const std::uint8_t*, kTosAt) & kEcnBits)};
}

bool DatagramTrains::fits(const Train& train, const Train& datagram) const {
  return datagram.bytes <= train.each && datagram.marks == train.marks &&
         datagram.source_port == train.source_port && train.datagrams < longest_now_ &&
         train.bytes + datagram.bytes <= kMostTrainBytes;
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
    for (std::uint16_t at = train.first; at != kNone; at = datagrams_[at].next) {
      write_parts(datagrams_[at], part);
    }
    message.msg_iovlen = static_cast<std::size_t>(&parts_[part - 1] - message.msg_iov) + 1;
    write_control(train, controls_[i], message);
  }
}

void DatagramTrains::write_parts(const Datagram& datagram, std::size_t& part) {
  // Where the datagram begins and ends in the frame; the first has its header before its part.
  std::uint32_t begin = datagram.from == 0 ? kDatagramAt : kBodyAt + datagram.from;
  const std::uint32_t end = kBodyAt + datagram.from + datagram.bytes;
  if (datagram.from != 0) {
    parts_[part++] = {const_cast<std::byte*>(datagram.header.data()), kFragmentHeaderBytes};
  }
  std::uint32_t at = 0;  // where the piece begins
  for (rte_mbuf* piece = datagram.frame; begin < end; piece = piece->next) {
    const std::uint32_t piece_end = at + piece->data_len;
    if (begin < piece_end) {
      const std::uint32_t until = std::min(end, piece_end);
      parts_[part++] = {rte_pktmbuf_mtod_offset(piece, void*, begin - at), until - begin};
      begin = until;
    }
    at = piece_end;
  }
  const std::uint32_t filling = datagram.each - kFragmentHeaderBytes - datagram.bytes;
  if (filling != 0) parts_[part++] = {const_cast<std::byte*>(kFilling.data()), filling};
}

void DatagramTrains::write_control(const Train& train, Control& control, msghdr& message) const {
  auto* const first = reinterpret_cast<cmsghdr*>(control.bytes);
  cmsghdr* item = first;
  if (train.datagrams > 1) {
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

// How many frames it has of which nothing was dropped before.
unsigned DatagramTrains::break_frames(const Train& train) {
  unsigned frames = 0;
  for (std::uint16_t at = train.first; at != kNone; at = datagrams_[at].next) {
    if (datagrams_[at].is_broken) continue;
    ++frames;
    for (unsigned i = 0; i < count_; ++i) {
      if (datagrams_[i].frame == datagrams_[at].frame) datagrams_[i].is_broken = true;
    }
  }
  return frames;
}

// How many whole frames are gone with it, and their bytes.
unsigned DatagramTrains::release(const Train& train, std::uint64_t& bytes) {
  unsigned frames = 0;
  for (std::uint16_t at = train.first; at != kNone; at = datagrams_[at].next) {
    if (!datagrams_[at].is_last) continue;
    if (!datagrams_[at].is_broken) {
      ++frames;
      bytes += datagrams_[at].frame->pkt_len;
    }
    rte_pktmbuf_free(datagrams_[at].frame);
  }
  return frames;
}

// What trains before this one had is gone.
void DatagramTrains::keep_from(unsigned train) {
  if (train == train_count_) {
    count_ = 0;
    return;
  }
  std::array<Datagram, kMostDatagrams> kept{};
  unsigned count = 0;
  for (unsigned i = train; i < train_count_; ++i) {
    for (std::uint16_t at = trains_[i].first; at != kNone; at = datagrams_[at].next) {
      kept[count++] = datagrams_[at];
    }
  }
  std::copy_n(kept.begin(), count, datagrams_.begin());
  count_ = count;
}

}  // namespace gradcube::dataplane
