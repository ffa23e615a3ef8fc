// What an engine does about links (links/): it sends the greetings that its server owes, keeps its
// flows on routes that work, and tells the source of a frame that its next hop is down.

#include <span>

#include "dataplane/engine/engine.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/padding.h"
#include "dataplane/links/way_back.h"
#include "protocol/link_frame.h"
#include "protocol/mac.h"

namespace gradcube::dataplane {

namespace {

// So often a relay tells of frames whose next hop is down: mostly a burst of them says the same.
constexpr Nanoseconds kBetweenPathFailures = 20'000;

}  // namespace

// Into the port's plain burst. What finds no room, or no packet, stays owed: of a padded greeting
// it would be told that it was sent.
void Engine::send_greetings(PortQueue& out) {
  while (!out.plain.is_full() && keeper_.owes(out.number)) {
    rte_mbuf* padding = nullptr;
    if (keeper_.owes_padded(out.number) && (padding = pools_.answers.allocate()) == nullptr) {
      ++counters_.no_packet_memory;
      break;
    }
    std::size_t bytes = 0;
    rte_mbuf* greeting = own_frame([&](std::span<std::uint8_t> frame) {
      const GreetingBytes written = keeper_.write_owed(out.number, frame);
      bytes = written.padding;
      return written.headers;
    });
    if (greeting == nullptr) {
      rte_pktmbuf_free(padding);
      break;
    }
    if (padding != nullptr) append_padding(*greeting, *padding, bytes);
    out.plain.put(greeting);
  }
}

// A greeting, or a path failure.
void Engine::receive_link_frame(const protocol::ParsedFrame& frame,
                                std::span<const std::uint8_t> headers,
                                std::span<const std::uint8_t> padding) {
  const protocol::FrameError error = protocol::check(headers, padding, server_keys());
  if (error != protocol::FrameError::none) {
    counters_.drop(error);
    if (error == protocol::FrameError::bad_mac && frame.type == protocol::FrameType::greeting) {
      keeper_.note_other_key(frame.link, port_in_, now_);
    }
  } else if (frame.type == protocol::FrameType::path_failure) {
    if (paths_.take_failure(frame, now_)) {
      ++counters_.path_failures;
    } else {
      counters_.drop(DropReason::wrong_link);
    }
  } else {
    switch (keeper_.take(frame, port_in_, now_)) {
      case GreetingVerdict::wrong_link:
        return counters_.drop(DropReason::wrong_link);
      case GreetingVerdict::wrong_cluster:
        return counters_.drop(DropReason::wrong_cluster);
      case GreetingVerdict::wrong_length:
        return counters_.drop(protocol::FrameError::bad_length);
      case GreetingVerdict::stale:
        ++counters_.stale_greetings;
        return;
      case GreetingVerdict::fits:
        return;
    }
  }
}

bcube::Route Engine::route_of(const Flow& flow) const {
  return flow.use.chosen.size() != 0 ? flow.use.chosen : paths_.best(flow.planned, flow.peer);
}

void Engine::reroute() {
  for (EngineJob* job : attached_) {
    job->for_each_flow([this](Flow& flow) {
      bcube::Route& chosen = flow.use.chosen;
      if (!chooser_.may_choose(flow) || !paths_.works(chosen)) chosen = {};
      if (move(flow, route_of(flow))) ++counters_.reroutes;
    });
  }
}

// The segments that are on their way over a route that has failed are sent again at once, over the
// new one. False: the flow takes the route already, or has no port, as there was no memory when its
// job was reset. Where it throws std::bad_alloc the flow stays where it is.
bool Engine::move(Flow& flow, const bcube::Route& route) {
  if (route == flow.route || flow.out == nullptr) return false;
  const FlowScheduler::Rank rank = rank_of(flow);
  ports_[port_to(route[0])]->make_room(*flow.job, rank);
  // From here on nothing throws.
  const bool failed = !paths_.works(flow.route);
  flow.out->remove_outgoing(flow);
  PortQueue& out = take_route(flow, route);
  flow.frame.emplace(frame_template_of(flow));
  out.add_outgoing(*flow.job, rank, flow);
  flow.send.change_path(failed, now_);
  // The acknowledgements that were on their way may be lost, too.
  flow.receive.acknowledge_at_once();
  wake_answer(flow);
  wake_resend(flow);
  wake_segment(flow);
  arm_timer(flow);
  return true;
}

protocol::RoutingHeader Engine::routing_over(const bcube::Route& route,
                                             bcube::ServerId destination) const {
  protocol::RoutingHeader routing;
  routing.source = static_cast<std::uint16_t>(settings_.server);
  routing.destination = static_cast<std::uint16_t>(destination);
  routing.hop_count = static_cast<std::uint8_t>(route.size());
  routing.authenticated = settings_.keys != nullptr;
  for (unsigned i = 0; i < route.size(); ++i) routing.hops[i] = {route[i].level, route[i].digit};
  return routing;
}

// Tells the source of a frame that its next hop from this relay is down.
void Engine::tell_path_failure(rte_mbuf* packet, const protocol::RoutingHeader& routing) {
  if (now_ < next_path_failure_) return;
  const std::optional<protocol::RoutingHeader> back = way_back(neighbours_, routing);
  if (!back.has_value()) return;
  const bcube::Neighbour& next = *neighbours_.find(back->hops[0].level, back->hops[0].digit);
  const protocol::Hop failed = routing.hops[routing.hop_index + 1U];
  const bool sent = send_own_frame(next.port, [&](std::span<std::uint8_t> out) {
    return protocol::write_link_frame(
        out, protocol::FrameType::path_failure, link_addresses(next), *back,
        static_cast<std::uint16_t>(protocol::kFirstSourcePort + thread_of(packet)),
        {back->source, failed.level, failed.digit}, server_keys());
  });
  if (sent) next_path_failure_ = now_ + kBetweenPathFailures;
}

}  // namespace gradcube::dataplane
