#include "dataplane/engine/messages/mailroom.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bcube_forwarding/path_set.h"
#include "dataplane/engine/session/session.h"
#include "dataplane/host/attempt.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

Mailroom::Mailroom(EngineJob& job, Session& session, const RankOrder& ranks,
                   const control::Placement& placement, bcube::ServerId server,
                   std::uint32_t segment_bytes, unsigned window, const FlowSettings& flows,
                   std::uint64_t hash_key)
    : job_(job),
      session_(session),
      ranks_(ranks),
      placement_(placement),
      server_(server),
      segment_bytes_(segment_bytes),
      window_(window),
      flow_settings_(flows),
      key_(hash_key) {
  letters_.reserve(most_in_flight());
  ends_.reserve(most_in_flight());
  for (unsigned local = 0; local < trainers(); ++local) {
    arrived_.emplace_back(session_.region(local).bytes(), segment_bytes_);
  }
}

unsigned Mailroom::trainers() const { return session_.trainers(); }

MailTable& Mailroom::table() const { return session_.mail(); }

std::size_t Mailroom::most_in_flight() const { return trainers() * Session::kMaxInFlight; }

unsigned Mailroom::work() {
  const unsigned begun = begin_some();
  std::erase_if(falling_silent_, [this](const auto& falling) {
    if (begun_ < falling.second && table().fresh() != 0) return false;
    fall_silent(falling.first);
    return true;
  });
  unsigned withdrawn = 0;
  for (; withdrawn < kWithdrawnAtOnce; ++withdrawn) {
    const auto number = table().next_withdrawn();
    if (!number.has_value()) break;
    const Letter& letter = letters_[*number];
    if (letter.open && !letter.deserted) channel_to(letter.peer)->withdraw(*number);
  }
  return begun + withdrawn + sweep_some() + end_some() + copy_some();
}

// Where there is no memory for the channel to its server, one stays fresh, and is found again.
unsigned Mailroom::begin_some() {
  unsigned found = 0;
  for (; found < kBegunAtOnce && table().fresh() != 0; ++found) {
    const MailRequest& next = table().at(table().first_fresh());
    const bcube::ServerId peer = placement_.server(ranks_.in_plan(next.peer / trainers()));
    MailChannel* channel = nullptr;
    if (!attempt([&] { channel = channel_to(peer); })) return found + 1;
    begin(*table().next_fresh(), *channel);
    ++begun_;
  }
  return found;
}

void Mailroom::begin(std::uint32_t number, MailChannel& channel) {
  if (letters_.size() <= number) letters_.resize(number + std::size_t{1});
  Letter& letter = letters_[number];
  letter = Letter();
  letter.request = table().at(number);
  letter.open = true;
  const auto peer_local = static_cast<std::uint8_t>(letter.request.peer % trainers());
  const auto local = static_cast<std::uint8_t>(letter.request.local);
  letter.peer = channel.peer();
  letter.address = letter.request.sends ? MailAddress{local, peer_local, letter.request.tag}
                                        : MailAddress{peer_local, local, letter.request.tag};
  // On a long ring the peer may be farther away than a frame goes.
  if (letter.peer != server_ && channel.flows().empty()) return end(number, GRADCUBE_EINVAL, 0);
  if (letter.request.sends && has_left(other_of(number))) {
    desert(number);
  } else if (letter.request.sends) {
    channel.send(number);
  } else if (letter.peer != server_) {
    channel.receive(number);
  } else {
    const std::uint64_t sequence = next_own_sequence();
    channel.add_want({sequence, number, letter.address, letter.request.bytes, letter.request.dtype},
                     own_sequence());
  }
}

MailChannel* Mailroom::channel_to(bcube::ServerId server) {
  const auto known = channels_.find(server);
  if (known != channels_.end()) return known->second.get();
  if (!placement_.space().contains(server) || !placement_.rank(server).has_value()) return nullptr;
  for (unsigned local = 0; local < trainers(); ++local) record_of({server, local});
  sweeping_.reserve(channels_.size() + 1);
  decltype(channels_) made;
  MailChannel& channel = *(made[server] = std::make_unique<MailChannel>(
                               *this, server, most_in_flight(), segment_bytes_, key_));
  if (server != server_) {
    add_flows(channel);
    open_(channel);
  }
  channels_.merge(made);
  return &channel;
}

void Mailroom::add_flows(MailChannel& channel) {
  const bcube::AddressSpace& space = placement_.space();
  const std::vector<bcube::Route> there = bcube::message_paths(space, server_, channel.peer());
  const std::vector<bcube::Route> back = bcube::message_paths(space, channel.peer(), server_);
  const std::size_t paths = std::min({there.size(), back.size(), std::size_t{kMostMailPaths}});
  for (std::size_t path = 0; path < paths; ++path) {
    const FlowKey key{.stage = protocol::Stage::aggregation,
                      .step = static_cast<std::uint8_t>(path),
                      .offset = 0,
                      .peer = channel.peer(),
                      .planned = there[path],
                      .port_in = static_cast<std::uint8_t>(
                          bcube::port_at_end(space, channel.peer(), back[path]))};
    channel.add_flow(key, job_, flow_settings_, window_);
  }
}

const std::uint8_t* Mailroom::region_of(const Letter& letter) const {
  return session_.region(letter.request.local).base();
}

Letter* Mailroom::find_receive(std::uint32_t number, bcube::ServerId from) {
  if (number >= letters_.size()) return nullptr;
  Letter& letter = letters_[number];
  return letter.open && !letter.request.sends && letter.peer == from ? &letter : nullptr;
}

MailPeer Mailroom::other_of(std::uint32_t number) const {
  const Letter& letter = letters_[number];
  return {letter.peer, letter.request.sends ? letter.address.to : letter.address.from};
}

Mailroom::Departed& Mailroom::record_of(const MailPeer& peer) {
  deserters_.reserve(departed_.size() + 1);
  return departed_[peer];
}

void Mailroom::depart(bcube::ServerId server, unsigned local) {
  Departed& departed = record_of({server, local});
  if (departed.known) return;
  // Known only then: where there is no memory for all of this, the caller comes again.
  if (is_own(server)) falling_silent_.emplace_back(local, begun_ + table().fresh());
  const auto channel = channels_.find(server);
  if (channel != channels_.end()) begin_sweep(*channel->second);
  if (!departed.deserted.empty()) add_deserter({server, local});
  departed.known = true;
}

void Mailroom::fall_silent(unsigned local) {
  silent_ |= std::uint32_t{1} << local;
  for_each_channel([this](MailChannel& channel) {
    if (channel.any_wants()) begin_sweep(channel);
  });
}

void Mailroom::begin_sweep(MailChannel& channel) {
  if (channel.begin_sweep()) sweeping_.push_back(&channel);
}

unsigned Mailroom::sweep_some() {
  std::size_t left = kSweptAtOnce;
  while (left != 0 && !sweeping_.empty()) {
    if (sweeping_.back()->sweep(left)) sweeping_.pop_back();
  }
  return static_cast<unsigned>(kSweptAtOnce - left);
}

// It stands in no other queue, and nothing but end_some() ends it.
void Mailroom::desert(std::uint32_t number) {
  letters_[number].deserted = true;
  const MailPeer peer = other_of(number);
  Departed& departed = departed_.at(peer);
  if (departed.known && departed.deserted.empty()) add_deserter(peer);
  departed.deserted.push(letters_, number);
  departed.locals |= std::uint32_t{1} << letters_[number].request.local;
}

void Mailroom::add_deserter(const MailPeer& peer) {
  deserters_.push_back(peer);
  table().set_deserters(deserters_.size());
}

std::map<MailPeer, std::uint32_t> Mailroom::deserters(std::size_t most) const {
  std::map<MailPeer, std::uint32_t> peers;
  for (std::size_t i = 0; i < std::min(most, deserters_.size()); ++i) {
    peers[deserters_[i]] = departed_.at(deserters_[i]).locals;
  }
  return peers;
}

void Mailroom::end_deserted(const MailPeer& peer, std::uint32_t notice) {
  const auto found = std::find(deserters_.begin(), deserters_.end(), peer);
  if (found == deserters_.end()) return;
  ending_.push_back({LetterQueue(), notice});
  deserters_.erase(found);
  table().set_deserters(deserters_.size());
  Departed& departed = departed_.at(peer);
  departed.locals = 0;
  ending_.back().letters = std::exchange(departed.deserted, {});
}

unsigned Mailroom::end_some() {
  unsigned ended = 0;
  for (; ended < kDesertedAtOnce && !ending_.empty(); ++ended) {
    auto& [letters, notice] = ending_.back();
    end(letters.pop(letters_), GRADCUBE_EPEER, 0, notice);
    if (letters.empty()) ending_.pop_back();
  }
  return ended;
}

void Mailroom::end(std::uint32_t number, std::int32_t code, std::uint64_t bytes,
                   std::uint32_t notice) {
  letters_[number].open = false;
  ends_.push_back({number, code, bytes, notice});
}

// What a trainer reads instead of a notice: shared::Completion.
void Mailroom::refuse(std::uint32_t number, std::uint64_t bytes, aggregation::DataType other) {
  const bool differ = aggregation::differ(letters_[number].request.dtype, other);
  end(number, GRADCUBE_EMISMATCH, bytes, differ ? static_cast<std::uint32_t>(other) + 1 : 0);
}

void Mailroom::publish_ends() {
  for (const End& end : ends_) {
    session_.end_mail(end.number, end.code, end.bytes, end.notice);
  }
  ends_.clear();
}

void Mailroom::copy(std::uint32_t send, std::uint32_t receive) {
  table().begin(send);
  table().begin(receive);
  const MailRequest& from = letters_[send].request;
  const MailRequest& to = letters_[receive].request;
  if (from.bytes > to.bytes || aggregation::differ(from.dtype, to.dtype)) {
    refuse(send, from.bytes, to.dtype);
    refuse(receive, from.bytes, from.dtype);
  } else {
    letters_[send].number = receive;
    copies_.push(letters_, send);
  }
}

// The messages take turns, so that a short one does not wait for a long one.
unsigned Mailroom::copy_some() {
  std::uint64_t left = kCopiedAtOnce;
  unsigned turns = 0;
  for (; turns < kTurnsAtOnce && left != 0 && !copies_.empty(); ++turns) {
    const std::uint32_t number = copies_.pop(letters_);
    Letter& send = letters_[number];
    const MailRequest& from = send.request;
    const MailRequest& to = letters_[send.number].request;
    const std::uint64_t now = std::min({from.bytes - send.copied, kCopiedInTurn, left});
    if (now != 0) std::memmove(to.buffer + send.copied, from.buffer + send.copied, now);
    left -= now;
    send.copied += now;
    if (send.copied != from.bytes) {
      copies_.push(letters_, number);
      continue;
    }
    end(send.number, GRADCUBE_OK, from.bytes);
    end(number, GRADCUBE_OK, from.bytes);
  }
  return turns;
}

}  // namespace gradcube::dataplane
