// What a channel makes of segments that arrive.

#include <algorithm>
#include <cstring>

#include "dataplane/engine/flows/port_queue.h"
#include "dataplane/engine/messages/mail_channel.h"
#include "dataplane/engine/messages/mailroom.h"
#include "protocol/bytes.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

Want read_want(const Contribution& segment, std::uint64_t sequence) {
  return {sequence,
          segment.signature.collective,
          {segment.payload[kWantFrom], segment.payload[kWantTo],
           protocol::load_little<std::uint64_t>(segment.payload + kWantTag)},
          protocol::load_little<std::uint64_t>(segment.payload + kWantRoom),
          static_cast<aggregation::DataType>(segment.payload[kWantDtype])};
}

// Of a refusal: its message and the receive differ in type, or the message is too long.
aggregation::DataType refused_dtype(const Contribution& refusal) {
  return static_cast<aggregation::DataType>(refusal.payload[kRefusalDtype]);
}

}  // namespace

// Every field is hostile.
MailChannel::Acceptance MailChannel::accept(Flow& flow, std::uint64_t,
                                            const Contribution& segment) {
  const CollectiveSignature& signature = segment.signature;
  bool fitting = false;
  switch (static_cast<MailKind>(signature.kind)) {
    case MailKind::want:
      fitting = flow.step == 0 && takes_want(segment);
      break;
    case MailKind::withdrawal:
      fitting = flow.step == 0 && segment.bytes == 0 && signature.collective < most_in_flight_;
      break;
    case MailKind::data:
    case MailKind::refusal:
    case MailKind::withdrawn:
    case MailKind::absence: {
      const Letter* receive = room_.find_receive(signature.collective, peer_);
      fitting = receive != nullptr && fits(*receive, segment);
      break;
    }
  }
  if (fitting) return {};
  return {DropReason::unfitting_mail};
}

// Until the answer to it has been sent, a receive has not ended: so an honest server asks for no
// more, and no more answers wait.
bool MailChannel::takes_want(const Contribution& segment) const {
  return segment.bytes == kWantBytes && segment.payload[kWantFrom] < room_.trainers() &&
         segment.payload[kWantTo] < room_.trainers() &&
         segment.signature.collective < most_in_flight_ &&
         matcher_.wants() + withdrawn_.size() + absences_.size() < most_in_flight_;
}

// Nobody can answer a withdrawal that has not been sent; and the message has not met its want.
bool MailChannel::can_be_withdrawn(const Letter& receive) const {
  return receive.withdrawal == Letter::Withdrawal::told &&
         receive.withdrawal_asked < flows_[0].send.next() && receive.arrived == 0;
}

// Nobody can answer a want that has not been sent; each segment counts once; and none lies behind
// the last. So a message is whole when as many have arrived as it has.
bool MailChannel::fits(const Letter& receive, const Contribution& segment) const {
  const CollectiveSignature& signature = segment.signature;
  if (receive.asked >= flows_[0].send.next() || signature.count == UINT32_MAX || receive.deserted) {
    return false;
  }
  if (signature.kind == static_cast<std::uint8_t>(MailKind::absence)) {
    return segment.bytes == 0 && receive.arrived == 0;
  }
  if (signature.kind == static_cast<std::uint8_t>(MailKind::withdrawn)) {
    return segment.bytes == 0 && can_be_withdrawn(receive);
  }
  if (signature.kind == static_cast<std::uint8_t>(MailKind::refusal)) {
    return segment.bytes == kRefusalBytes && receive.arrived == 0 &&
           (protocol::load_little<std::uint64_t>(segment.payload) > receive.request.bytes ||
            aggregation::differ(receive.request.dtype, refused_dtype(segment)));
  }
  const std::uint64_t begin = std::uint64_t{signature.count} * segment_bytes_;
  if (begin > receive.request.bytes || segment.bytes > receive.request.bytes - begin) return false;
  if (signature.root == 1) {
    return segment.bytes <= segment_bytes_ && receive.expected == 0 &&
           receive.end <= signature.count;
  }
  return signature.root == 0 && segment.bytes == segment_bytes_ &&
         (receive.expected == 0 || signature.count + 1 < receive.expected) &&
         !room_.arrived(receive).has(receive.bits + signature.count);
}

bool MailChannel::take(Flow& flow, std::uint64_t sequence, const Contribution& segment,
                       const Acceptance&) {
  const std::uint32_t number = segment.signature.collective;
  const std::uint64_t settled = flow.receive.cumulative();
  switch (static_cast<MailKind>(segment.signature.kind)) {
    case MailKind::want:
      add_want(read_want(segment, sequence), settled);
      break;
    case MailKind::data:
      take_data(room_.letter(number), number, segment);
      break;
    case MailKind::refusal:
      forget_withdrawal(number);
      room_.refuse(number, protocol::load_little<std::uint64_t>(segment.payload),
                   refused_dtype(segment));
      acknowledge();
      break;
    case MailKind::withdrawal:
      matcher_.add_withdrawal(sequence, number);
      break;
    case MailKind::withdrawn:
      room_.end(number, GRADCUBE_ECANCELED, 0);
      break;
    case MailKind::absence:
      forget_withdrawal(number);
      room_.desert(number);
      break;
  }
  if (flow.step == 0 && matcher_.any_unsettled()) settle(settled);
  wake_consumed(flow);
  return false;
}

void MailChannel::take_data(Letter& receive, std::uint32_t number, const Contribution& segment) {
  const std::uint64_t begin = std::uint64_t{segment.signature.count} * segment_bytes_;
  if (segment.bytes != 0) {
    std::memcpy(receive.request.buffer + begin, segment.payload, segment.bytes);
  }
  if (receive.arrived++ == 0) room_.table().begin(number);
  receive.end = std::max(receive.end, segment.signature.count + 1);
  if (segment.signature.root == 1) {
    receive.expected = receive.end;
    receive.length = begin + segment.bytes;
  } else {
    room_.arrived(receive).add(receive.bits + segment.signature.count);
  }
  if (receive.arrived != receive.expected) return;
  forget_withdrawal(number);
  room_.end(number, GRADCUBE_OK, receive.length);
  acknowledge();
}

// The receive ends, and its number is soon another one's.
void MailChannel::forget_withdrawal(std::uint32_t number) {
  if (room_.letter(number).withdrawal == Letter::Withdrawal::untold) {
    withdrawals_.remove(room_.letters(), number);
  }
}

// The sender's trainer waits for the last word of each path.
void MailChannel::acknowledge() {
  for (Flow& flow : flows_) {
    if (flow.receive.acknowledgement_deadline() == protocol::kNever) continue;
    flow.receive.acknowledge_at_once();
    wake_answer(flow);
  }
}

}  // namespace gradcube::dataplane
