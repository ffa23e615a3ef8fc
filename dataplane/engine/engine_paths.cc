// Path probes on their way (path_chooser.h): an engine sends those of its flows, writes what its
// links have left into those that it relays, and answers those that are for its server.

#include <algorithm>

#include "dataplane/engine/engine.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/links/way_back.h"
#include "protocol/link_frame.h"
#include "protocol/mac.h"

namespace gradcube::dataplane {

// Each iteration, after what has arrived.
void Engine::keep_paths() {
  if (Flow* mover = chooser_.mover(now_); mover != nullptr && move(*mover, mover->use.chosen)) {
    ++counters_.path_moves;
    chooser_.on_move(now_);
  }
  bcube::ServerId server = 0;
  for (const PathChooser::Probe& probe : chooser_.due(server, now_)) {
    const protocol::RoutingHeader routing = routing_over(probe.route, server);
    // One that finds no room counts as one that is lost.
    const std::uint64_t left = loads_.left_out(port_to(probe.route[0]));
    if (send_path_probe(routing, settings_.queue, {probe.number, false, left})) {
      ++counters_.path_probes;
    }
  }
}

// Over its first hop, among the frames that are relayed. thread: whose queue it and its answer come
// to.
bool Engine::send_path_probe(const protocol::RoutingHeader& routing, unsigned thread,
                             const protocol::PathProbeHeader& probe) {
  const bcube::Neighbour& next = *neighbours_.find(routing.hops[0].level, routing.hops[0].digit);
  return send_own_frame(next.port, [&](std::span<std::uint8_t> out) {
    return protocol::write_path_probe(
        out, link_addresses(next), routing,
        static_cast<std::uint16_t>(protocol::kFirstSourcePort + thread), probe, server_keys());
  });
}

// A relay's part. False: the frame is damaged, or forged.
bool Engine::pass_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame,
                             unsigned port_out) {
  const std::span<std::uint8_t> head{rte_pktmbuf_mtod(packet, std::uint8_t*), frame.header_bytes};
  const protocol::FrameError error = protocol::check(head, {}, server_keys());
  if (error != protocol::FrameError::none) {
    counters_.drop(error);
    return false;
  }
  if (!frame.path_probe.answer) {
    protocol::lower_left(head, frame, std::min(loads_.left_in(port_in_), loads_.left_out(port_out)),
                         server_keys());
  }
  return true;
}

// At its destination: a probe, or the answer to one.
void Engine::receive_path_probe(rte_mbuf* packet, const protocol::ParsedFrame& frame) {
  const std::uint8_t* head = rte_pktmbuf_mtod(packet, const std::uint8_t*);
  const protocol::FrameError error = protocol::check({head, frame.header_bytes}, {}, server_keys());
  if (error != protocol::FrameError::none) return counters_.drop(error);
  const protocol::PathProbeHeader& probe = frame.path_probe;
  if (probe.answer) {
    if (!chooser_.on_answer(frame.routing.source, probe, now_)) {
      counters_.drop(DropReason::stray_probe);
    }
    return;
  }
  const std::optional<protocol::RoutingHeader> back = way_back(neighbours_, frame.routing);
  if (!back.has_value()) {
    counters_.drop(DropReason::stray_probe);
    return;
  }
  const std::uint64_t left = std::min(probe.bits_per_second_left, loads_.left_in(port_in_));
  send_path_probe(*back, thread_of(packet), {probe.number, true, left});
}

}  // namespace gradcube::dataplane
