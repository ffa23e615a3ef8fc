#include "dataplane/links/link_keeper.h"

#include <algorithm>
#include <utility>

#include "dataplane/host/padding.h"
#include "dataplane/links/way_back.h"
#include "protocol/link_frame.h"

namespace gradcube::dataplane {

namespace {

// So often a port announces itself, but no more often than it greets.
constexpr protocol::Nanoseconds kBetweenAnnouncements = 1000 * protocol::kMillisecond;
// So long, and as long as three greetings, what a port has heard counts as heard lately.
constexpr protocol::Nanoseconds kLately = 5 * kBetweenAnnouncements;
constexpr unsigned kSixteenths = 16;  // of a padded greeting

}  // namespace

LinkKeeper::LinkKeeper(const GreetingSettings& settings, const bcube::NeighbourTable& neighbours,
                       ServerLinks& links)
    : settings_(settings),
      neighbours_(neighbours),
      links_(links),
      number_(settings.first_number),
      ports_(neighbours.space().ports(neighbours.self())) {
  const bcube::AddressSpace& space = neighbours.space();
  for (unsigned level = 0; level < space.levels(); ++level) {
    of_links_.emplace_back(space.hop_digits(level));
  }
  for (unsigned number = 0; number < ports_.size(); ++number) {
    const unsigned level = space.level_of_port(number);
    Port& port = ports_[number];
    for (protocol::IndexSet* of : {&port.owed, &port.padded_owed, &port.padded_due}) {
      of->resize(space.hop_digits(level));
    }
    port.padded_next = neighbours.own_digit(level);
    port.padded_saved = std::max(kSixteenths, settings.padded_sixteenths);
    port.answers.reserve(kMostAnswers);
  }
  if (settings_.padded_time == 0) settings_.padded_time = settings_.interval;
  if (settings_.interval == 0) next_greeting_ = protocol::kNever;
  if (settings_.interval == 0 || settings_.padded_bytes == 0) next_padded_ = protocol::kNever;
}

template <typename Function>
void LinkKeeper::for_each_link(const Function& function) const {
  for (unsigned port = 0; port < ports_.size(); ++port) {
    for (const bcube::Neighbour& neighbour : neighbours_.behind(port)) {
      function(port, hop_to(neighbour));
    }
  }
}

void LinkKeeper::end_interval(protocol::Nanoseconds now) {
  next_greeting_ = now + settings_.interval;
  ++number_;
  bool changed = false;
  for_each_link([&](unsigned port, bcube::Hop hop) {
    Link& link = at(hop);
    const std::uint64_t frames = links_.direct_frames(hop);
    const bool news = frames != std::exchange(link.frames, frames);
    if (news && link.full.carried()) link.watch.on_sign_of_life();
    link.watch.end_interval();
    const bool went_down = links_.up(hop) && !link.watch.up();
    if (went_down && settings_.padded_bytes != 0) link.full.on_down();
    changed = links_.set(hop, link.watch.up(), link.watch.hears()) || changed;
    ports_[port].owed.insert(hop.digit);
  });
  if (changed) links_.publish();
  for (unsigned port = 0; port < ports_.size(); ++port) find_due(port);
  if (!settings_.announces || now < next_announcement_) return;
  next_announcement_ = now + kBetweenAnnouncements;
  for (unsigned port = 0; port < ports_.size(); ++port) {
    ports_[port].owed.insert(neighbours_.own_digit(neighbours_.space().level_of_port(port)));
  }
}

// Who is heard and asks, or has its turn.
void LinkKeeper::find_due(unsigned port) {
  const unsigned own = neighbours_.own_digit(neighbours_.space().level_of_port(port));
  for (const bcube::Neighbour& neighbour : neighbours_.behind(port)) {
    const bcube::Hop link = hop_to(neighbour);
    const bool has_turn = (number_ + own + link.digit) % kPaddedEvery == 0;
    if (!is_heard(link)) {
      ports_[port].padded_due.erase(link.digit);
    } else if (has_turn || at(link).full.wanted()) {
      ports_[port].padded_due.insert(link.digit);
    }
  }
}

void LinkKeeper::owe_padded(protocol::Nanoseconds now) {
  next_padded_ = now + settings_.padded_time;
  const unsigned most = std::max(kSixteenths, settings_.padded_sixteenths);
  for (Port& port : ports_) {
    port.padded_saved = std::min(port.padded_saved + settings_.padded_sixteenths, most);
    owe_padded(port);
  }
}

// Who comes behind the one that was served last is served first. At the start each server begins
// with another one, so that what they cannot send at once does not come to one of them at once.
void LinkKeeper::owe_padded(Port& port) {
  protocol::IndexSet& due = port.padded_due;
  while (port.padded_saved >= kSixteenths && !due.empty()) {
    std::size_t digit = due.next(port.padded_next);
    if (digit == due.size()) digit = due.next(0);
    port.padded_next = digit + 1;
    port.padded_saved -= kSixteenths;
    due.erase(digit);
    port.padded_owed.insert(digit);
    port.owed.insert(digit);  // which tells of it
  }
}

bool LinkKeeper::is_heard(bcube::Hop link) const {
  const Heard& heard = at(link).heard;
  return heard.number != 0 && number_ - heard.interval <= bcube::LinkWatch::kSilentIntervals;
}

std::vector<LossyLength> LinkKeeper::lossy_lengths(unsigned port) const {
  std::vector<LossyLength> found;
  for (const bcube::Neighbour& neighbour : neighbours_.behind(port)) {
    const bcube::Hop link = hop_to(neighbour);
    const FullFrames& full = at(link).full;
    if (links_.up(link) || !is_heard(link) || !(full.lost_from() || full.lost_to())) continue;
    found.push_back({neighbour.server, full.lost_from(), full.lost_to()});
  }
  return found;
}

// Of an interval in which it may have been sent.
bool LinkKeeper::is_fresh(std::uint64_t echo, std::uint64_t intervals) const {
  return echo != 0 && number_ - echo < intervals + settings_.intervals_on_the_way;
}

// Padded ones first: the others tell of them. With the number of the greeting that it answers, or
// of the last that was fresh.
LinkKeeper::Owed LinkKeeper::next_owed(Port& port, unsigned level) {
  for (protocol::IndexSet* owed : {&port.padded_owed, &port.owed}) {
    if (owed->empty()) continue;
    const std::size_t digit = owed->next(0);
    owed->erase(digit);
    const bool announces = digit == neighbours_.own_digit(level);
    return {digit, announces ? port.wrong_number : of_links_[level][digit].heard.number,
            owed == &port.padded_owed};
  }
  const Answer answer = port.answers.back();
  port.answers.pop_back();
  return {answer.digit, answer.number, false};
}

GreetingBytes LinkKeeper::write_owed(unsigned port, std::span<std::uint8_t> out) {
  const unsigned level = neighbours_.space().level_of_port(port);
  const Owed owed = next_owed(ports_[port], level);
  const bcube::Hop link{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(owed.digit)};
  const bcube::Neighbour* to = neighbours_.find(link.level, link.digit);
  protocol::RoutingHeader routing;
  routing.source = static_cast<std::uint16_t>(neighbours_.self());
  routing.destination = to == nullptr ? routing.source : static_cast<std::uint16_t>(to->server);
  routing.hops[0] = {link.level, link.digit};
  protocol::LinkAddresses addresses;
  if (to != nullptr) {
    addresses = link_addresses(*to);
  } else {
    const bcube::LinkAddress own = bcube::embedded_link_address(port, neighbours_.self());
    const bcube::LinkAddress& all = bcube::kBroadcastAddress;
    addresses = {own.mac, all.mac, own.ip, all.ip};
  }
  std::size_t padding = 0;
  if (owed.padded) {
    at(link).full.on_sent(number_);
    padding = settings_.padded_bytes -
              protocol::header_bytes(protocol::FrameType::greeting, 1, settings_.keys != nullptr);
  }
  const std::size_t headers = protocol::write_link_frame(
      out, protocol::FrameType::greeting, addresses, routing, protocol::kFirstSourcePort,
      {routing.source, link.level, link.digit, number_, owed.echo, settings_.digest,
       to == nullptr ? protocol::FullFrameNews{} : at(link).full.news(number_)},
      settings_.keys, padding_bytes(padding));
  return {headers, padding};
}

// The neighbour that greets so over the link that leads here through the port; null: none does.
const bcube::Neighbour* LinkKeeper::sender_of(const protocol::LinkHeader& greeting,
                                              unsigned port) const {
  const bcube::AddressSpace& space = neighbours_.space();
  if (greeting.level != space.level_of_port(port) ||
      !neighbours_.is_behind(port, greeting.server) ||
      space.with_digit(neighbours_.self(), greeting.level, greeting.digit) != neighbours_.self()) {
    return nullptr;
  }
  const unsigned back = space.digit_back(greeting.server, greeting.level, greeting.digit);
  const bcube::Neighbour* from = neighbours_.find(greeting.level, back);
  return from != nullptr && from->port == port ? from : nullptr;
}

void LinkKeeper::answer(const bcube::Neighbour& to, std::uint64_t number) {
  std::vector<Answer>& answers = ports_[to.port].answers;
  const Answer answer{hop_to(to).digit, number};
  if (answers.size() < kMostAnswers &&
      std::find(answers.begin(), answers.end(), answer) == answers.end()) {
    answers.push_back(answer);
  }
}

GreetingVerdict LinkKeeper::take(const protocol::ParsedFrame& greeting, unsigned port,
                                 protocol::Nanoseconds now) {
  const protocol::LinkHeader& link = greeting.link;
  if (settings_.interval == 0 || greeting.routing.hop_count != 1 ||
      link.server != greeting.routing.source) {
    return GreetingVerdict::wrong_link;
  }
  const GreetingFault fault = fault_of(link, port, neighbours_, settings_.digest);
  if (fault != GreetingFault::none) return take_wrong(fault, greeting, port, now);
  const bool padded = greeting.payload_bytes != 0;
  if (padded && (protocol::is_announcement(greeting.routing) ||
                 greeting.header_bytes + greeting.payload_bytes != settings_.padded_bytes)) {
    return GreetingVerdict::wrong_length;
  }
  if (protocol::is_announcement(greeting.routing)) return GreetingVerdict::fits;
  const bcube::Neighbour* from = sender_of(link, port);
  if (from == nullptr) return GreetingVerdict::wrong_link;
  if (!is_fresh(link.echo, kFreshIntervals)) {
    answer(*from, link.number);
    return GreetingVerdict::stale;
  }
  const bcube::Hop hop = hop_to(*from);
  Link& of_link = at(hop);
  const Heard before = std::exchange(of_link.heard, {link.number, number_});
  FullFrames& full = of_link.full;
  const bool was_missing =
      full.take(link, padded, 4 * (kFreshIntervals + settings_.intervals_on_the_way));
  if (number_ - before.interval > 1 || was_missing) answer(*from, link.number);
  // Once in an interval at most.
  if (full.wanted() && settings_.padded_bytes != 0 && !full.sent(number_) &&
      !ports_[port].padded_owed.contains(hop.digit)) {
    ports_[port].padded_due.insert(hop.digit);
    owe_padded(ports_[port]);
  }
  if (full.carried()) of_link.watch.on_sign_of_life();
  return GreetingVerdict::fits;
}

// Who is no neighbour, or has other settings, is answered with the next announcement; a neighbour
// with other settings at once.
GreetingVerdict LinkKeeper::take_wrong(GreetingFault fault, const protocol::ParsedFrame& greeting,
                                       unsigned port, protocol::Nanoseconds now) {
  const protocol::LinkHeader& link = greeting.link;
  const bool announced = protocol::is_announcement(greeting.routing);
  const auto between = static_cast<std::uint64_t>(kBetweenAnnouncements / settings_.interval);
  if (is_fresh(link.echo, announced ? kFreshIntervals + 2 * between : kFreshIntervals)) {
    ports_[port].wrong_greeting = {fault, link.level, link.server, link.settings, now};
  } else if (const bcube::Neighbour* from = announced ? nullptr : sender_of(link, port)) {
    answer(*from, link.number);
  }
  if (announced) ports_[port].wrong_number = link.number;
  return fault == GreetingFault::other_settings ? GreetingVerdict::wrong_cluster
                                                : GreetingVerdict::wrong_link;
}

WrongGreeting LinkKeeper::if_lately(const WrongGreeting& heard, protocol::Nanoseconds now) const {
  return now - heard.heard <= std::max(kLately, 3 * settings_.interval) ? heard : WrongGreeting{};
}

}  // namespace gradcube::dataplane
