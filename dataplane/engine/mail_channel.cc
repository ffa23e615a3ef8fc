#include "dataplane/engine/mail_channel.h"

#include <algorithm>
#include <cstring>

#include "dataplane/engine/guarded_memory.h"
#include "dataplane/engine/mailroom.h"
#include "dataplane/engine/port_queue.h"
#include "protocol/bytes.h"
#include "trainer/shared_layout.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// Where the fields of a want's payload lie; the number is that of the segment header.
constexpr std::size_t kFrom = 0;
constexpr std::size_t kTo = 1;
constexpr std::size_t kTag = 2;
constexpr std::size_t kRoom = 10;
static_assert(kRoom + sizeof(std::uint64_t) == kWantBytes);

CollectiveSignature signature_of(MailKind kind, std::uint32_t number, std::uint32_t segment,
                                 bool last) {
  return {0, segment, static_cast<std::uint16_t>(last ? 1 : 0), static_cast<std::uint8_t>(kind),
          number};
}

Want read_want(const Contribution& segment, std::uint64_t sequence) {
  return {sequence,
          segment.signature.collective,
          {segment.payload[kFrom], segment.payload[kTo],
           protocol::load_little<std::uint64_t>(segment.payload + kTag)},
          protocol::load_little<std::uint64_t>(segment.payload + kRoom)};
}

}  // namespace

MailChannel::MailChannel(Mailroom& room, bcube::ServerId peer, std::size_t most_in_flight,
                         std::uint32_t segment_bytes, std::uint64_t key)
    : room_(room),
      peer_(peer),
      most_in_flight_(most_in_flight),
      segment_bytes_(segment_bytes),
      matcher_(most_in_flight, most_in_flight, key) {}

void MailChannel::add_flow(const FlowKey& key, EngineJob& job, const FlowSettings& settings,
                           unsigned window) {
  flows_.emplace_back(key, job, *this, settings, window);
  paths_.emplace_back();
}

void MailChannel::send(std::uint32_t number) {
  const std::optional<Want> want = matcher_.add_send(number, room_.letter(number).address);
  if (want.has_value()) meet(number, *want);
}

void MailChannel::receive(std::uint32_t number) {
  Letter& letter = room_.letter(number);
  letter.notice[kFrom] = letter.address.from;
  letter.notice[kTo] = letter.address.to;
  protocol::store_little(&letter.notice[kTag], letter.address.tag);
  protocol::store_little(&letter.notice[kRoom], letter.request.bytes);
  const std::uint8_t* region = room_.region_of(letter);
  letter.bits = room_.arrived(letter).begin(
      static_cast<std::uint64_t>(letter.request.buffer - region), letter.request.bytes);
  untold_.push(room_.letters(), number);
  wake_segment(flows_[0]);
}

void MailChannel::add_want(const Want& want, std::uint64_t settled) {
  matcher_.add_want(want);
  settle(settled);
}

void MailChannel::settle(std::uint64_t sequence) {
  matcher_.settle(
      sequence, [this](std::uint32_t number, const Want& met) { meet(number, met); },
      [this](const Want& want) {
        if (!room_.has_left(want.address.from)) return true;
        answer_absence(want.number);
        return false;
      });
}

void MailChannel::leave_own(unsigned local) {
  absences_.reserve(most_in_flight_);
  matcher_.take_out(
      false, [local](const MailAddress& address) { return address.from == local; },
      [this](std::uint32_t want) { answer_absence(want); });
}

void MailChannel::leave_peer(unsigned local) {
  matcher_.take_out(
      true, [local](const MailAddress& address) { return address.to == local; },
      [this](std::uint32_t send) { room_.desert(send); });
}

void MailChannel::answer_absence(std::uint32_t want) {
  if (room_.is_own(peer_)) return room_.desert(want);
  absences_.push_back(want);
  wake_segment(flows_[0]);
}

// From now on the flows send it.
void MailChannel::meet(std::uint32_t number, const Want& want) {
  if (room_.is_own(peer_)) return room_.copy(number, want.number);
  room_.table().begin(number);
  Letter& letter = room_.letter(number);
  const std::uint64_t bytes = letter.request.bytes;
  letter.number = want.number;
  letter.refused = bytes > want.room;
  letter.segments = 1;
  if (letter.refused) {
    protocol::store_little(letter.notice.data(), bytes);
  } else if (bytes != 0) {
    letter.segments = static_cast<std::uint32_t>((bytes + segment_bytes_ - 1) / segment_bytes_);
  }
  const auto all = static_cast<unsigned>(flows_.size());
  letter.paths = letter.request.paths != 0 ? std::min(letter.request.paths, all)
                                           : (bytes < shared::kLargeMessage ? 1 : all);
  Unsent& unsent = unsent_[letter.paths - 1];
  letter.turn = ++turns_;
  unsent.letters.push(room_.letters(), number);
  unsent.segments += letter.segments;
  for (unsigned path = 0; path < letter.paths; ++path) wake_segment(flows_[path]);
}

void MailChannel::on_acknowledged(const Flow& flow) {
  Path& path = paths_[flow.step];
  for (; path.acknowledged < flow.send.cumulative(); ++path.acknowledged) {
    const Entry& entry = path.entries[place_of(path.acknowledged)];
    if (entry.segment == kWantEntry || entry.segment == kAbsenceEntry) continue;
    Letter& letter = room_.letter(entry.letter);
    --letter.unanswered;
    if (letter.unanswered != 0 || letter.taken != letter.segments) continue;
    room_.table().remove_unanswered();
    room_.end(entry.letter, letter.refused ? GRADCUBE_EMISMATCH : GRADCUBE_OK,
              letter.request.bytes);
  }
}

// Of those that take this path, where the turn is.
MailChannel::Unsent* MailChannel::next_unsent(unsigned path) {
  Unsent* next = nullptr;
  const auto turn = [this](const Unsent& unsent) {
    return room_.letter(unsent.letters.front()).turn;
  };
  for (std::size_t more = path; more < flows_.size(); ++more) {
    Unsent& unsent = unsent_[more];
    if (unsent.letters.empty()) continue;
    if (next == nullptr || turn(unsent) < turn(*next)) next = &unsent;
  }
  return next;
}

// The next segment of a flow: a want or an absence before all else, then one of the mail whose turn
// it is.
bool MailChannel::choose(const Flow& flow, Entry& entry) {
  if (flow.step == 0 && !untold_.empty()) {
    entry = {untold_.pop(room_.letters()), kWantEntry};
    room_.letter(entry.letter).asked = flow.send.next();
    return true;
  }
  if (flow.step == 0 && !absences_.empty()) {
    entry = {absences_.back(), kAbsenceEntry};
    absences_.pop_back();
    return true;
  }
  Unsent* unsent = next_unsent(flow.step);
  if (unsent == nullptr) return false;
  const std::uint32_t number = unsent->letters.pop(room_.letters());
  --unsent->segments;
  Letter& letter = room_.letter(number);
  entry = {number, letter.taken++};
  ++letter.unanswered;
  letter.turn = ++turns_;
  if (letter.taken < letter.segments) {
    unsent->letters.push(room_.letters(), number);
  } else {
    room_.table().add_unanswered();
  }
  return true;
}

std::optional<OutgoingSegment> MailChannel::next_segment(Flow& flow) {
  Path& path = paths_[flow.step];
  const std::uint64_t next = flow.send.next();
  Entry& entry = path.entries[place_of(next)];
  if (path.chosen <= next) {
    if (!choose(flow, entry)) return std::nullopt;
    path.chosen = next + 1;
  }
  return outgoing(entry);
}

OutgoingSegment MailChannel::sent_segment(const Flow& flow, std::uint64_t sequence) const {
  return outgoing(paths_[flow.step].entries[place_of(sequence)]);
}

// A want may be sent again although its receive has ended, because only the word of its arrival was
// lost. Then nobody reads it.
OutgoingSegment MailChannel::outgoing(const Entry& entry) const {
  static constexpr std::uint8_t kNothing = 0;
  if (entry.segment == kAbsenceEntry) {
    return {entry.letter, signature_of(MailKind::absence, entry.letter, 0, false), &kNothing, 0};
  }
  const Letter& letter = room_.letter(entry.letter);
  if (entry.segment == kWantEntry) {
    return {entry.letter, signature_of(MailKind::want, entry.letter, 0, false),
            letter.notice.data(), kWantBytes};
  }
  if (letter.refused) {
    return {letter.number, signature_of(MailKind::refusal, letter.number, 0, false),
            letter.notice.data(), kRefusalBytes};
  }
  const std::uint64_t begin = std::uint64_t{entry.segment} * segment_bytes_;
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(letter.request.bytes - begin, segment_bytes_));
  GuardedMemory::touch(letter.request.buffer + begin, bytes);
  return {letter.number,
          signature_of(MailKind::data, letter.number, entry.segment,
                       entry.segment + 1 == letter.segments),
          letter.request.buffer + begin, bytes};
}

// What the paths share counts for each of them in part: so none is granted what another will send.
std::uint8_t MailChannel::backlog(Flow& flow) const {
  const unsigned path = flow.step;
  std::uint64_t ready = paths_[path].chosen > flow.send.next() ? 1 : 0;
  if (path == 0) ready += untold_.size() + absences_.size();
  for (std::size_t more = path; more < flows_.size(); ++more) {
    ready += (unsent_[more].segments + more) / (more + 1);
  }
  return static_cast<std::uint8_t>(std::min(ready, kMostBacklog));
}

// Every field is hostile.
MailChannel::Acceptance MailChannel::accept(Flow& flow, std::uint64_t,
                                            const Contribution& segment) {
  const CollectiveSignature& signature = segment.signature;
  bool fitting = false;
  switch (static_cast<MailKind>(signature.kind)) {
    case MailKind::want:
      fitting = flow.step == 0 && segment.bytes == kWantBytes &&
                segment.payload[kFrom] < room_.trainers() &&
                segment.payload[kTo] < room_.trainers() &&
                matcher_.wants() + absences_.size() < most_in_flight_;
      break;
    case MailKind::data:
    case MailKind::refusal:
    case MailKind::absence: {
      const Letter* receive = room_.find_receive(signature.collective, peer_);
      fitting = receive != nullptr && fits(*receive, segment);
      break;
    }
  }
  if (fitting) return {};
  return {DropReason::unfitting_mail};
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
  if (signature.kind == static_cast<std::uint8_t>(MailKind::refusal)) {
    return segment.bytes == kRefusalBytes && receive.arrived == 0 &&
           protocol::load_little<std::uint64_t>(segment.payload) > receive.request.bytes;
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
      room_.end(number, GRADCUBE_EMISMATCH, protocol::load_little<std::uint64_t>(segment.payload));
      acknowledge();
      break;
    case MailKind::absence:
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
  room_.end(number, GRADCUBE_OK, receive.length);
  acknowledge();
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
