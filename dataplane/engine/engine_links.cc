// What an engine does about links: one engine of each server greets the neighbours and finds out
// which links work; all keep their flows on routes whose links do; and a relay tells the source of
// a frame that its next hop is down.

#include <algorithm>
#include <span>

#include "bcube_forwarding/path_set.h"
#include "dataplane/engine/engine.h"
#include "dataplane/fabric/frame_fields.h"
#include "protocol/crc.h"
#include "protocol/link_frame.h"

namespace gradcube::dataplane {

namespace {

// So often a relay tells of frames whose next hop is down: mostly a burst of them says the same.
constexpr Nanoseconds kBetweenPathFailures = 20'000;
// So often a port tells whoever hears it which one it is, but no more often than it greets.
constexpr Nanoseconds kBetweenAnnouncements = 1'000'000'000;
// So long, and as long as three greetings, what a port has heard counts as heard lately.
constexpr Nanoseconds kLately = 5 * kBetweenAnnouncements;
// So often flows are moved for what relays tell: whoever sends such notices takes little time.
constexpr Nanoseconds kBetweenReroutes = 1'000'000;

}  // namespace

// Each iteration, after what has arrived: a sign of life counts before its absence does.
void Engine::keep_links() {
  if (now_ >= next_greeting_) greet();
  if (failed_hops_.forget(now_)) reroute_at_ = std::min(reroute_at_, now_);
  const std::uint32_t version = links_.version();
  if (version == links_seen_ && now_ < reroute_at_) return;
  links_seen_ = version;
  rerouted_at_ = now_;
  reroute_at_ = protocol::kNever;
  reroute();
}

void Engine::greet() {
  next_greeting_ = now_ + settings_.greeting_interval;
  for (const auto& port : ports_) {
    for (const bcube::Neighbour& neighbour : neighbours_.behind(port->number)) {
      const bcube::Hop link = hop_to(neighbour);
      std::uint64_t& before = direct_frames_[link.level][link.digit];
      const std::uint64_t frames = links_.direct_frames(link);
      if (frames != before) link_watch_.on_frame(link);
      before = frames;
    }
  }
  // Whether a link came up or went down is seen below, beside whether it is heard.
  link_watch_.end_interval();
  publish_links();
  const bool announces = settings_.announces && now_ >= next_announcement_;
  if (announces) next_announcement_ = now_ + kBetweenAnnouncements;
  for (const auto& port : ports_) {
    // In the place of the server itself.
    const unsigned level = neighbours_.space().level_of_port(port->number);
    if (announces) port->greetings.insert(neighbours_.own_digit(level));
    for (const bcube::Neighbour& neighbour : neighbours_.behind(port->number)) {
      port->greetings.insert(neighbour.digit);
    }
  }
}

void Engine::publish_links() {
  bool changed = false;
  for (const auto& port : ports_) {
    for (const bcube::Neighbour& neighbour : neighbours_.behind(port->number)) {
      const bcube::Hop link = hop_to(neighbour);
      changed = links_.set(link, link_watch_.up(link), link_watch_.hears(link)) || changed;
    }
  }
  if (changed) links_.publish();
}

// Into the port's burst. Those that find no room stay owed.
unsigned Engine::send_greetings(PortQueue& out, unsigned room) {
  const unsigned level = neighbours_.space().level_of_port(out.number);
  unsigned sent = 0;
  for (; sent < room && !out.greetings.empty(); ++sent) {
    const std::size_t digit = out.greetings.next(0);
    const bcube::Neighbour* to = neighbours_.find(level, static_cast<unsigned>(digit));
    rte_mbuf* greeting = to == nullptr ? announcement(out.number) : greeting_to(*to);
    if (greeting == nullptr) break;
    out.greetings.erase(digit);
    out.burst[out.filled++] = greeting;
  }
  return sent;
}

rte_mbuf* Engine::greeting_to(const bcube::Neighbour& neighbour) {
  protocol::RoutingHeader routing;
  routing.source = static_cast<std::uint16_t>(settings_.server);
  routing.destination = static_cast<std::uint16_t>(neighbour.server);
  const bcube::Hop link = hop_to(neighbour);
  routing.hops[0] = {link.level, link.digit};
  return make_link_frame(
      protocol::FrameType::greeting, addresses_to(neighbour), routing, protocol::kFirstSourcePort,
      {routing.source, link.level, link.digit, link_watch_.hears(link), settings_.digest});
}

// For whoever hears the port.
rte_mbuf* Engine::announcement(unsigned port) {
  const unsigned level = neighbours_.space().level_of_port(port);
  const bcube::LinkAddress own = bcube::embedded_link_address(port, settings_.server);
  const bcube::LinkAddress& all = bcube::kBroadcastAddress;
  protocol::RoutingHeader routing;
  routing.source = routing.destination = static_cast<std::uint16_t>(settings_.server);
  const protocol::Hop self{static_cast<std::uint8_t>(level),
                           static_cast<std::uint8_t>(neighbours_.own_digit(level))};
  routing.hops[0] = self;
  return make_link_frame(protocol::FrameType::greeting, {own.mac, all.mac, own.ip, all.ip}, routing,
                         protocol::kFirstSourcePort,
                         {routing.source, self.level, self.digit, false, settings_.digest});
}

rte_mbuf* Engine::make_link_frame(protocol::FrameType type,
                                  const protocol::LinkAddresses& addresses,
                                  const protocol::RoutingHeader& routing, std::uint16_t source_port,
                                  const protocol::LinkHeader& link) {
  rte_mbuf* packet = pools_.answers.allocate();
  if (packet == nullptr) {
    ++counters_.no_packet_memory;
    return nullptr;
  }
  const std::size_t bytes =
      protocol::write_link_frame(header_room(packet), type, addresses, routing, source_port, link);
  packet->data_len = static_cast<std::uint16_t>(bytes);
  packet->pkt_len = static_cast<std::uint32_t>(bytes);
  return packet;
}

// A greeting, or a path failure.
void Engine::receive_link_frame(const protocol::ParsedFrame& frame,
                                std::span<const std::uint8_t> headers) {
  if (!protocol::crc_is_right(headers, {})) {
    ++counters_.malformed[static_cast<std::size_t>(protocol::FrameError::bad_crc)];
    return;
  }
  if (frame.type == protocol::FrameType::greeting) {
    const std::optional<DropReason> wrong = take_greeting(frame);
    if (wrong.has_value()) counters_.drop(*wrong);
  } else if (!take_path_failure(frame)) {
    counters_.drop(DropReason::wrong_link);
  }
}

// Over the link that it names, from the neighbour that is there. An announcement is no sign of
// life: it does not say whether its sender hears this server.
std::optional<DropReason> Engine::take_greeting(const protocol::ParsedFrame& frame) {
  const protocol::LinkHeader& link = frame.link;
  if (settings_.greeting_interval == 0 || frame.routing.hop_count != 1 ||
      link.server != frame.routing.source) {
    return DropReason::wrong_link;
  }
  const GreetingFault fault = fault_of(link, port_in_, neighbours_, settings_.digest);
  if (fault != GreetingFault::none) {
    wrong_greetings_[port_in_] = {fault, link.level, link.server, link.settings, now_};
    return fault == GreetingFault::other_settings ? DropReason::wrong_cluster
                                                  : DropReason::wrong_link;
  }
  if (protocol::is_announcement(frame.routing)) return std::nullopt;
  if (link.digit != neighbours_.own_digit(link.level)) return DropReason::wrong_link;
  const unsigned digit = neighbours_.space().digit(link.server, link.level);
  link_watch_.on_greeting({link.level, static_cast<std::uint8_t>(digit)}, link.hears_you);
  return std::nullopt;
}

WrongGreeting Engine::wrong_greeting(unsigned port) const {
  const WrongGreeting& last = wrong_greetings_[port];
  const bool lately = now_ - last.heard <= std::max(kLately, 3 * settings_.greeting_interval);
  return lately ? last : WrongGreeting{};
}

bool Engine::take_path_failure(const protocol::ParsedFrame& frame) {
  const protocol::LinkHeader& link = frame.link;
  const bcube::AddressSpace& space = neighbours_.space();
  if (!space.contains(link.server) || link.server != frame.routing.source ||
      link.level >= space.levels() || link.digit >= space.radix(link.level) ||
      !space.joins(link.level, space.digit(link.server, link.level), link.digit)) {
    return false;
  }
  ++counters_.path_failures;
  if (failed_hops_.add(link.server, space.with_digit(link.server, link.level, link.digit), now_)) {
    reroute_at_ = std::min(reroute_at_, rerouted_at_ + kBetweenReroutes);
  }
  return true;
}

bool Engine::works(bcube::ServerId from, unsigned level, bcube::ServerId to) const {
  const bcube::AddressSpace& space = neighbours_.space();
  if (from == settings_.server) {
    return links_.up(bcube::Hop{static_cast<std::uint8_t>(level),
                                static_cast<std::uint8_t>(space.digit(to, level))});
  }
  return !failed_hops_.has(from, to);
}

bool Engine::works(const bcube::Route& route) const {
  bcube::ServerId at = settings_.server;
  for (const bcube::Hop& hop : route) {
    const bcube::ServerId next = neighbours_.space().with_digit(at, hop.level, hop.digit);
    if (!works(at, hop.level, next)) return false;
    at = next;
  }
  return true;
}

// The one that was chosen by load, the planned one, or else the shortest of the parallel paths that
// works; first of those that leave through another port, as the whole port may have failed here or
// at the other end. Where none does, the planned one again if something is heard over its first
// link, else a path that begins with a link over which something is: what relays have told may be
// over, and links that lose much are not always down when they seem to be. Allocates: routes change
// when links fail, not when frames come.
bcube::Route Engine::route_of(const Flow& flow) const {
  if (flow.use.chosen.size() != 0) return flow.use.chosen;
  if (works(flow.planned)) return flow.planned;
  std::vector<bcube::Route> paths = paths_to(flow.peer);
  if (paths.empty()) {
    if (links_.heard(flow.planned[0])) return flow.planned;
    paths = paths_over_links_heard(flow.peer);
  }
  if (paths.empty()) return flow.planned;
  const auto elsewhere = std::find_if(paths.begin(), paths.end(), [&](const bcube::Route& path) {
    return port_to(path[0]) != port_to(flow.planned[0]);
  });
  return elsewhere == paths.end() ? paths.front() : *elsewhere;
}

std::vector<bcube::Route> Engine::paths_to(bcube::ServerId server) const {
  return paths_where(server, [this](bcube::ServerId from, unsigned level, bcube::ServerId to) {
    return works(from, level, to);
  });
}

std::vector<bcube::Route> Engine::paths_over_links_heard(bcube::ServerId server) const {
  return paths_where(server, [this](bcube::ServerId from, unsigned level, bcube::ServerId to) {
    const unsigned digit = neighbours_.space().digit(to, level);
    return from != settings_.server || links_.heard(bcube::Hop{static_cast<std::uint8_t>(level),
                                                               static_cast<std::uint8_t>(digit)});
  });
}

std::vector<bcube::Route> Engine::paths_where(bcube::ServerId server,
                                              const bcube::HopFilter& usable) const {
  const bcube::AddressSpace& space = neighbours_.space();
  std::vector<bcube::Route> paths = bcube::parallel_paths(space, settings_.server, server, usable);
  std::erase_if(paths,
                [&](const bcube::Route& path) { return path.size() > bcube::most_hops(space); });
  return paths;
}

void Engine::reroute() {
  for (EngineJob* job : attached_) {
    job->for_each_flow([this](Flow& flow) {
      bcube::Route& chosen = flow.use.chosen;
      if (!may_choose(flow) || !works(chosen)) chosen = {};
      if (move(flow, route_of(flow))) ++counters_.reroutes;
    });
  }
}

// The segments that are on their way over a route that has failed are sent again at once, over the
// new one. False: the flow takes the route already.
bool Engine::move(Flow& flow, const bcube::Route& route) {
  if (route == flow.route) return false;
  const bool failed = !works(flow.route);
  flow.out->remove_outgoing(flow);
  take_route(flow, route);
  flow.frame.emplace(frame_template_of(flow));
  flow.out->add_outgoing(*flow.job, rank_of(flow), flow);
  flow.send.change_path(failed, now_);
  // The acknowledgements that were on their way may be lost, too.
  flow.receive.acknowledge_at_once();
  wake_answer(flow);
  wake_resend(flow);
  wake_segment(flow);
  arm_timer(flow);
  return true;
}

// From this server to a frame's source, over the servers that the frame has come through; none if
// its hops, which are hostile, do not lead here.
std::optional<protocol::RoutingHeader> Engine::way_back(
    const protocol::RoutingHeader& routing) const {
  const bcube::AddressSpace& space = neighbours_.space();
  if (!space.contains(routing.source)) return std::nullopt;
  protocol::RoutingHeader back;
  back.source = static_cast<std::uint16_t>(settings_.server);
  back.destination = routing.source;
  back.hop_count = static_cast<std::uint8_t>(routing.hop_index + 1);
  bcube::ServerId at = routing.source;
  for (unsigned i = 0; i < back.hop_count; ++i) {
    const protocol::Hop hop = routing.hops[i];
    if (hop.level >= space.levels() || hop.digit >= space.radix(hop.level)) return std::nullopt;
    back.hops[back.hop_count - 1 - i] = {hop.level,
                                         static_cast<std::uint8_t>(space.digit(at, hop.level))};
    at = space.with_digit(at, hop.level, hop.digit);
  }
  if (at != settings_.server) return std::nullopt;
  if (neighbours_.find(back.hops[0].level, back.hops[0].digit) == nullptr) return std::nullopt;
  return back;
}

// Tells the source of a frame that its next hop from this relay is down.
void Engine::tell_path_failure(rte_mbuf* packet, const protocol::RoutingHeader& routing) {
  if (now_ < next_path_failure_) return;
  const std::optional<protocol::RoutingHeader> back = way_back(routing);
  if (!back.has_value()) return;
  const bcube::Neighbour* next = neighbours_.find(back->hops[0].level, back->hops[0].digit);
  const protocol::Hop failed = routing.hops[routing.hop_index + 1U];
  rte_mbuf* notice =
      make_link_frame(protocol::FrameType::path_failure, addresses_to(*next), *back,
                      static_cast<std::uint16_t>(protocol::kFirstSourcePort + thread_of(packet)),
                      {back->source, failed.level, failed.digit, false});
  if (notice == nullptr) return;
  if (ports_[next->port]->relayed.put(notice)) {
    next_path_failure_ = now_ + kBetweenPathFailures;
  } else {
    rte_pktmbuf_free(notice);
  }
}

}  // namespace gradcube::dataplane
