#include "dataplane/engine/messages/mail_channel.h"

#include <algorithm>
#include <cstring>

#include "dataplane/engine/flows/port_queue.h"
#include "dataplane/engine/memory/guarded_memory.h"
#include "dataplane/engine/messages/mailroom.h"
#include "protocol/bytes.h"
#include "protocol/wire.h"
#include "trainer/shared_layout.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint8_t kNothing = 0;  // the payload of a segment that has none

CollectiveSignature signature_of(MailKind kind, std::uint32_t number, std::uint32_t segment,
                                 bool last) {
  return {number, segment, static_cast<std::uint16_t>(last ? 1 : 0),
          static_cast<std::uint8_t>(kind), 0};
}

}  // namespace

MailChannel::MailChannel(Mailroom& room, bcube::ServerId peer, std::size_t most_in_flight,
                         std::uint32_t segment_bytes, std::uint64_t key)
    : room_(room),
      peer_(peer),
      most_in_flight_(most_in_flight),
      segment_bytes_(segment_bytes),
      matcher_(most_in_flight, most_in_flight, key) {
  withdrawn_.reserve(most_in_flight);
  absences_.reserve(most_in_flight);
}

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
  letter.notice[kWantFrom] = letter.address.from;
  letter.notice[kWantTo] = letter.address.to;
  protocol::store_little(&letter.notice[kWantTag], letter.address.tag);
  protocol::store_little(&letter.notice[kWantRoom], letter.request.bytes);
  letter.notice[kWantDtype] = static_cast<std::uint8_t>(letter.request.dtype);
  const std::uint8_t* region = room_.region_of(letter);
  letter.bits = room_.arrived(letter).begin(
      static_cast<std::uint64_t>(letter.request.buffer - region), letter.request.bytes);
  untold_.push(room_.letters(), number);
  wake_segment(flows_[0]);
}

void MailChannel::withdraw(std::uint32_t number) {
  Letter& letter = room_.letter(number);
  if (letter.request.sends) {
    if (matcher_.take_out_send(number)) room_.end(number, GRADCUBE_ECANCELED, 0);
    return;
  }
  if (letter.withdrawal != Letter::Withdrawal::none) return;
  if (room_.is_own(peer_)) {
    matcher_.add_withdrawal(room_.next_own_sequence(), number);
    settle(room_.own_sequence());
  } else if (letter.asked == UINT64_MAX) {  // nobody has heard of it
    untold_.remove(room_.letters(), number);
    room_.end(number, GRADCUBE_ECANCELED, 0);
  } else {
    letter.withdrawal = Letter::Withdrawal::untold;
    withdrawals_.push(room_.letters(), number);
    wake_segment(flows_[0]);
  }
}

void MailChannel::add_want(const Want& want, std::uint64_t settled) {
  matcher_.add_want(want);
  settle(settled);
}

void MailChannel::settle(std::uint64_t sequence) {
  matcher_.settle(
      sequence, [this](std::uint32_t number, const Want& met) { meet(number, met); },
      [this](std::uint32_t number) {
        if (room_.is_own(peer_)) return room_.end(number, GRADCUBE_ECANCELED, 0);
        withdrawn_.push_back(number);
        wake_segment(flows_[0]);
      },
      [this](const Want& want) {
        if (!room_.sends_no_more(want.address.from)) return true;
        answer_absence(want.number);
        return false;
      });
}

bool MailChannel::sweep(std::size_t& steps) {
  return matcher_.sweep(
      steps,
      [this](bool sends, const MailAddress& address) {
        return sends ? room_.has_left({peer_, address.to}) : room_.sends_no_more(address.from);
      },
      [this](bool sends, std::uint32_t number) {
        sends ? room_.desert(number) : answer_absence(number);
      });
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
  letter.peer_dtype = want.dtype;
  letter.refused = bytes > want.room || aggregation::differ(letter.request.dtype, want.dtype);
  letter.segments = 1;
  if (letter.refused) {
    protocol::store_little(letter.notice.data(), bytes);
    letter.notice[kRefusalDtype] = static_cast<std::uint8_t>(letter.request.dtype);
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
    if (entry.segment >= kAbsenceEntry) continue;
    Letter& letter = room_.letter(entry.letter);
    --letter.unanswered;
    if (letter.unanswered != 0 || letter.taken != letter.segments) continue;
    room_.table().remove_unanswered();
    if (letter.refused) {
      room_.refuse(entry.letter, letter.request.bytes, letter.peer_dtype);
    } else {
      room_.end(entry.letter, GRADCUBE_OK, letter.request.bytes);
    }
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

// What a trainer has asked for or taken back, or an answer to either.
bool MailChannel::choose_notice(std::uint64_t sequence, Entry& entry) {
  if (!untold_.empty()) {
    entry = {untold_.pop(room_.letters()), kWantEntry};
    room_.letter(entry.letter).asked = sequence;
  } else if (!withdrawals_.empty()) {
    entry = {withdrawals_.pop(room_.letters()), kWithdrawalEntry};
    Letter& letter = room_.letter(entry.letter);
    letter.withdrawal = Letter::Withdrawal::told;
    letter.withdrawal_asked = sequence;
  } else if (!withdrawn_.empty()) {
    entry = {withdrawn_.back(), kWithdrawnEntry};
    withdrawn_.pop_back();
  } else if (!absences_.empty()) {
    entry = {absences_.back(), kAbsenceEntry};
    absences_.pop_back();
  } else {
    return false;
  }
  return true;
}

// The next segment of a flow: a notice before all else, then one of the mail whose turn it is.
bool MailChannel::choose(const Flow& flow, Entry& entry) {
  if (flow.step == 0 && choose_notice(flow.send.next(), entry)) return true;
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
  if (entry.segment >= kAbsenceEntry && entry.segment != kWantEntry) {
    const MailKind kind = entry.segment == kWithdrawalEntry  ? MailKind::withdrawal
                          : entry.segment == kWithdrawnEntry ? MailKind::withdrawn
                                                             : MailKind::absence;
    return {signature_of(kind, entry.letter, 0, false), &kNothing, 0};
  }
  const Letter& letter = room_.letter(entry.letter);
  if (entry.segment == kWantEntry) {
    return {signature_of(MailKind::want, entry.letter, 0, false), letter.notice.data(), kWantBytes};
  }
  if (letter.refused) {
    return {signature_of(MailKind::refusal, letter.number, 0, false), letter.notice.data(),
            kRefusalBytes};
  }
  const std::uint64_t begin = std::uint64_t{entry.segment} * segment_bytes_;
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(letter.request.bytes - begin, segment_bytes_));
  GuardedMemory::touch(letter.request.buffer + begin, bytes);
  return {signature_of(MailKind::data, letter.number, entry.segment,
                       entry.segment + 1 == letter.segments),
          letter.request.buffer + begin, bytes};
}

// What the paths share counts for each of them in part: so none is granted what another will send.
std::uint8_t MailChannel::backlog(Flow& flow) const {
  const unsigned path = flow.step;
  std::uint64_t ready = paths_[path].chosen > flow.send.next() ? 1 : 0;
  if (path == 0) {
    ready += untold_.size() + withdrawals_.size() + withdrawn_.size() + absences_.size();
  }
  for (std::size_t more = path; more < flows_.size(); ++more) {
    ready += (unsent_[more].segments + more) / (more + 1);
  }
  return static_cast<std::uint8_t>(std::min(ready, protocol::kMostBacklog));
}

}  // namespace gradcube::dataplane
