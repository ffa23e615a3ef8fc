// What an engine does about what paths have left (BCube source routing: BCube, section 4.1): it
// probes the paths of its flows, moves a flow to a better one, and tells other servers, whose
// probes come by, what its own links have left.
//
// Which flows may choose. A plan that exchanges with neighbours has put each exchange on a level,
// so that all links carry the same; these flows stay where they are as long as their link works.
// Those to servers further away, which relays pass on, may choose, and so may those that go around
// a link that is down, and mail, which no plan has put anywhere. Where links have no rate nothing
// says what they have left, and nobody chooses.

#include <algorithm>

#include "bcube_forwarding/path_choice.h"
#include "bcube_forwarding/path_set.h"
#include "dataplane/engine/engine.h"
#include "dataplane/fabric/frame_fields.h"
#include "protocol/crc.h"
#include "protocol/path_probe.h"

namespace gradcube::dataplane {

namespace {

// A flow that sends less than this part of its port's rate is left alone.
constexpr std::uint64_t kLeastPart = 32;

void measure(PathUse& use, Nanoseconds now) {
  const auto passed = static_cast<double>(std::max<Nanoseconds>(now - use.measured_at, 1));
  use.bits_per_second =
      static_cast<std::uint64_t>(8.0 * static_cast<double>(use.bytes - use.bytes_then) *
                                 protocol::kNanosecondsPerSecond / passed);
  use.bytes_then = use.bytes;
  use.measured_at = now;
}

}  // namespace

bool Engine::may_choose(const Flow& flow) const {
  return flow.mail != nullptr || !flow.is_neighbours() || !works(flow.planned);
}

bool Engine::sends_much(const Flow& flow) const {
  const std::uint64_t rate = loads_.rate(flow.out->number);
  return rate != 0 && flow.use.bits_per_second >= rate / kLeastPart;
}

template <typename Function>
void Engine::for_each_choosing(const Function& function) {
  for (EngineJob* job : watch_.watched()) {
    if (!job->moves()) continue;
    job->for_each_flow([&](Flow& flow) {
      if (may_choose(flow)) function(flow);
    });
  }
}

// Each iteration, after what has arrived.
void Engine::keep_paths() {
  if (const bcube::PathProber::News* news = prober_.take_result(now_)) choose_paths(*news);
  if (prober_.round_due(now_)) prober_.begin_round(measure_flows(), now_);
  if (const auto server = prober_.next(now_)) probe_paths(*server);
}

// Returns to which servers much is sent.
std::vector<bcube::ServerId> Engine::measure_flows() {
  std::vector<bcube::ServerId> servers;
  for_each_choosing([&](Flow& flow) {
    measure(flow.use, now_);
    if (sends_much(flow)) servers.push_back(flow.peer);
  });
  std::sort(servers.begin(), servers.end());
  servers.erase(std::unique(servers.begin(), servers.end()), servers.end());
  return servers;
}

// First those that flows take: without news of its own path none can compare.
std::vector<bcube::Route> Engine::routes_to_probe(bcube::ServerId server) {
  const bcube::AddressSpace& space = neighbours_.space();
  std::vector<bcube::Route> routes;
  const auto add = [&](const bcube::Route& route) {
    const bool known = std::find(routes.begin(), routes.end(), route) != routes.end();
    if (!known && route.size() <= bcube::most_hops(space)) routes.push_back(route);
  };
  for_each_choosing([&](const Flow& flow) {
    if (flow.peer == server && sends_much(flow)) add(flow.route);
  });
  const auto hop_works = [this](bcube::ServerId from, unsigned level, bcube::ServerId to) {
    return works(from, level, to);
  };
  for (const bcube::Route& route : bcube::candidate_paths(
           space, settings_.server, server, bcube::PathProber::kMostPaths, hop_works)) {
    add(route);
  }
  return routes;
}

void Engine::probe_paths(bcube::ServerId server) {
  const std::vector<bcube::Route> routes = routes_to_probe(server);
  const auto numbers = prober_.begin(server, routes, now_);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    protocol::RoutingHeader routing;
    routing.source = static_cast<std::uint16_t>(settings_.server);
    routing.destination = static_cast<std::uint16_t>(server);
    routing.hop_count = static_cast<std::uint8_t>(routes[i].size());
    for (unsigned hop = 0; hop < routes[i].size(); ++hop) {
      routing.hops[hop] = {routes[i][hop].level, routes[i][hop].digit};
    }
    const std::uint64_t left = loads_.left_out(port_to(routes[i][0]));
    // One that finds no room counts as one that is lost.
    if (send_path_probe(routing, settings_.queue, {numbers[i], false, left})) {
      ++counters_.path_probes;
    }
  }
}

// One flow moves at a time, the one that sends most: what the others have left changes with it.
void Engine::choose_paths(const bcube::PathProber::News& news) {
  Flow* mover = nullptr;
  for_each_choosing([&](Flow& flow) {
    if (flow.peer != news.server || !sends_much(flow)) return;
    const auto better = bcube::better_path(news.paths, flow.route, flow.use.bits_per_second,
                                           loads_.rate(flow.out->number));
    const bcube::Route route = better ? news.paths[*better].route : bcube::Route();
    const bool again = better.has_value() && route == flow.use.favoured && works(route);
    flow.use.favoured = route;
    if (!again) return;
    if (mover == nullptr || flow.use.bits_per_second > mover->use.bits_per_second) mover = &flow;
  });
  if (mover == nullptr || !prober_.coin()) return;
  mover->use.chosen = mover->use.favoured;
  mover->use.favoured = {};
  if (!move(*mover, mover->use.chosen)) return;
  ++counters_.path_moves;
  prober_.on_move(now_);
}

// Over its first hop, among the frames that are relayed. thread: whose queue it and its answer come
// to.
bool Engine::send_path_probe(const protocol::RoutingHeader& routing, unsigned thread,
                             const protocol::PathProbeHeader& probe) {
  const bcube::Neighbour& next = *neighbours_.find(routing.hops[0].level, routing.hops[0].digit);
  rte_mbuf* packet = pools_.answers.allocate();
  if (packet == nullptr) {
    ++counters_.no_packet_memory;
    return false;
  }
  const std::size_t bytes = protocol::write_path_probe(
      header_room(packet), addresses_to(next), routing,
      static_cast<std::uint16_t>(protocol::kFirstSourcePort + thread), probe);
  packet->data_len = static_cast<std::uint16_t>(bytes);
  packet->pkt_len = static_cast<std::uint32_t>(bytes);
  if (ports_[next.port]->relayed.put(packet)) return true;
  rte_pktmbuf_free(packet);
  return false;
}

// A relay's part. False: the frame is damaged.
bool Engine::pass_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame,
                             unsigned port_out) {
  const std::span<std::uint8_t> head{rte_pktmbuf_mtod(packet, std::uint8_t*), frame.header_bytes};
  if (!protocol::crc_is_right(head, {})) {
    ++counters_.malformed[static_cast<std::size_t>(protocol::FrameError::bad_crc)];
    return false;
  }
  if (!frame.path_probe.answer) {
    protocol::lower_left(head, frame,
                         std::min(loads_.left_in(port_in_), loads_.left_out(port_out)));
  }
  return true;
}

// At its destination: a probe, or the answer to one.
void Engine::receive_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame) {
  const std::uint8_t* head = rte_pktmbuf_mtod(packet, const std::uint8_t*);
  if (!protocol::crc_is_right({head, frame.header_bytes}, {})) {
    ++counters_.malformed[static_cast<std::size_t>(protocol::FrameError::bad_crc)];
    return;
  }
  const protocol::PathProbeHeader& probe = frame.path_probe;
  if (probe.answer) {
    if (!prober_.on_answer(frame.routing.source, probe.number, probe.bits_per_second_left, now_)) {
      counters_.drop(DropReason::stray_probe);
    }
    return;
  }
  const std::optional<protocol::RoutingHeader> back = way_back(frame.routing);
  if (!back.has_value()) {
    counters_.drop(DropReason::stray_probe);
    return;
  }
  const std::uint64_t left = std::min(probe.bits_per_second_left, loads_.left_in(port_in_));
  send_path_probe(*back, thread_of(packet), {probe.number, true, left});
}

}  // namespace gradcube::dataplane
