#include "dataplane/links/link_keeper.h"

#include <algorithm>
#include <utility>

#include "dataplane/links/way_back.h"
#include "protocol/link_frame.h"

namespace gradcube::dataplane {

namespace {

// So often a port announces itself, but no more often than it greets.
constexpr protocol::Nanoseconds kBetweenAnnouncements = 1000 * protocol::kMillisecond;
// So long, and as long as three greetings, what a port has heard counts as heard lately.
constexpr protocol::Nanoseconds kLately = 5 * kBetweenAnnouncements;

}  // namespace

LinkKeeper::LinkKeeper(const GreetingSettings& settings, const bcube::NeighbourTable& neighbours,
                       ServerLinks& links)
    : settings_(settings),
      neighbours_(neighbours),
      links_(links),
      watch_(neighbours.space(), neighbours.self()),
      number_(settings.first_number),
      owed_(neighbours.space().ports(neighbours.self())),
      wrong_greetings_(owed_.size()) {
  const bcube::AddressSpace& space = neighbours.space();
  for (unsigned port = 0; port < owed_.size(); ++port) {
    owed_[port].resize(space.hop_digits(space.level_of_port(port)));
  }
  for (unsigned level = 0; level < space.levels(); ++level) {
    frames_.emplace_back(space.hop_digits(level));
    heard_.emplace_back(space.hop_digits(level));
  }
  if (settings.interval == 0) next_greeting_ = protocol::kNever;
}

template <typename Function>
void LinkKeeper::for_each_link(const Function& function) const {
  for (unsigned port = 0; port < owed_.size(); ++port) {
    for (const bcube::Neighbour& neighbour : neighbours_.behind(port)) {
      function(port, hop_to(neighbour));
    }
  }
}

void LinkKeeper::end_interval(protocol::Nanoseconds now) {
  next_greeting_ = now + settings_.interval;
  ++number_;
  for_each_link([this](unsigned, bcube::Hop link) {
    const std::uint64_t frames = links_.direct_frames(link);
    if (frames != std::exchange(frames_[link.level][link.digit], frames)) watch_.on_frame(link);
    if (is_deaf(heard_[link.level][link.digit])) watch_.on_greeting(link, false);
  });
  // Whether a link came up or went down is seen below, beside whether it is heard.
  watch_.end_interval();
  bool changed = false;
  for_each_link([&](unsigned port, bcube::Hop link) {
    changed = links_.set(link, watch_.up(link), watch_.hears(link)) || changed;
    owed_[port].insert(link.digit);
  });
  if (changed) links_.publish();
  if (!settings_.announces || now < next_announcement_) return;
  next_announcement_ = now + kBetweenAnnouncements;
  for (unsigned port = 0; port < owed_.size(); ++port) {
    owed_[port].insert(neighbours_.own_digit(neighbours_.space().level_of_port(port)));
  }
}

// A number that was not heard in answer may be an old one. It is sent back all the same where none
// else is known to be right, as at the start: then the answer to it tells.
void LinkKeeper::note(Heard& heard, const protocol::LinkHeader& greeting) const {
  const bool is_fresh = greeting.echo != 0 &&
                        number_ - greeting.echo < kFreshIntervals + settings_.intervals_on_the_way;
  heard.fresh = heard.fresh || is_fresh;
  heard.stale = heard.stale || !is_fresh;
  const bool one_is_right = heard.known || heard.fresh;
  if (is_fresh || heard.number == 0 || !one_is_right) heard.number = greeting.number;
}

// At the end of an interval: whether the neighbour greets and does not hear this server.
bool LinkKeeper::is_deaf(Heard& heard) const {
  if (heard.fresh) heard.deaf = 0;
  if (heard.stale && !heard.fresh) heard.deaf = std::min(heard.deaf + 1, kDeafIntervals);
  const bool is_deaf = heard.stale && heard.deaf == kDeafIntervals;
  heard.known = std::exchange(heard.fresh, false);
  heard.stale = heard.answered = false;
  return is_deaf;
}

std::size_t LinkKeeper::write_owed(unsigned port, std::span<std::uint8_t> out) {
  const std::size_t digit = owed_[port].next(0);
  owed_[port].erase(digit);
  const bcube::Hop link{static_cast<std::uint8_t>(neighbours_.space().level_of_port(port)),
                        static_cast<std::uint8_t>(digit)};
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
  return protocol::write_link_frame(
      out, protocol::FrameType::greeting, addresses, routing, protocol::kFirstSourcePort,
      {routing.source, link.level, link.digit, to == nullptr ? 0 : number_,
       to == nullptr ? 0 : heard_[link.level][link.digit].number, settings_.digest},
      settings_.key);
}

// A sign of life comes over the link that it names, from the neighbour that is there.
GreetingVerdict LinkKeeper::take(const protocol::ParsedFrame& greeting, unsigned port,
                                 protocol::Nanoseconds now) {
  const protocol::LinkHeader& link = greeting.link;
  if (settings_.interval == 0 || greeting.routing.hop_count != 1 ||
      link.server != greeting.routing.source) {
    return GreetingVerdict::wrong_link;
  }
  const GreetingFault fault = fault_of(link, port, neighbours_, settings_.digest);
  if (fault != GreetingFault::none) {
    wrong_greetings_[port] = {fault, link.level, link.server, link.settings, now};
    return fault == GreetingFault::other_settings ? GreetingVerdict::wrong_cluster
                                                  : GreetingVerdict::wrong_link;
  }
  if (protocol::is_announcement(greeting.routing)) return GreetingVerdict::fits;
  const bcube::AddressSpace& space = neighbours_.space();
  if (space.with_digit(neighbours_.self(), link.level, link.digit) != neighbours_.self()) {
    return GreetingVerdict::wrong_link;
  }
  const unsigned back = space.digit_back(link.server, link.level, link.digit);
  const bcube::Neighbour* from = neighbours_.find(link.level, back);
  if (from == nullptr || from->port != port) return GreetingVerdict::wrong_link;
  Heard& heard = heard_[link.level][back];
  note(heard, link);
  if (!heard.known && !std::exchange(heard.answered, true)) owed_[port].insert(back);
  if (heard.fresh) {
    watch_.on_greeting(hop_to(*from), true);
  } else {
    watch_.on_frame(hop_to(*from));  // for so long as it is not taken for deaf
  }
  return GreetingVerdict::fits;
}

WrongGreeting LinkKeeper::wrong_greeting(unsigned port, protocol::Nanoseconds now) const {
  const WrongGreeting& last = wrong_greetings_[port];
  return now - last.heard <= std::max(kLately, 3 * settings_.interval) ? last : WrongGreeting{};
}

}  // namespace gradcube::dataplane
