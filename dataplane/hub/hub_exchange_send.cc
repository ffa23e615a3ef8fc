// The sending half of a hub's exchange: which segments can be sent, and where their bytes are.

#include <algorithm>

#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

using control::ScheduleStep;
using control::StreamPositions;

// As PlanExecutor::result_is_here().
bool HubExchange::has_result(const ChunkState& chunk, unsigned w, std::uint32_t position) const {
  const HubShape& shape = shape_of(chunk);
  const StreamPositions::ResultSource source = shape.layout.positions().result_source(w, position);
  const auto has_come = [&](unsigned u, unsigned r) {
    const ScheduleStep& step = schedule_.step(u);
    const unsigned from = std::max(r, step.first_sent);
    const unsigned place = from - step.sources_in(Stage::broadcast).first;
    const std::uint32_t rounds_before = from - r;
    return bit(
        chunk.bits +
        shape.result_bit(u, place, rounds_before * shape.layout.round_length(u) + source.position));
  };
  if (!source.own) return has_come(source.step, source.offset);
  for (unsigned u = source.step; u < schedule_.steps(); ++u) {
    const control::Offsets& streams = schedule_.step(u).send_streams;
    for (unsigned r = streams.first; r < streams.end; ++r) {
      if (!has_come(u, r)) return false;
    }
  }
  const unsigned last = schedule_.last_step();
  // Where the next round has been opened, all of this one has been added up.
  if (!schedule_.step(last).sums || chunk.opened != chunk.pushes) return true;
  return bit(chunk.bits +
             shape.reduced_bit(
                 last, static_cast<std::uint32_t>(shape.layout.sums(last)) + source.position));
}

bool HubExchange::is_ready(const ChunkState& chunk, const HubStream& to,
                           std::uint32_t position) const {
  const HubShape& shape = shape_of(chunk);
  const unsigned w = to.step;
  if (alone(chunk, to) != nullptr) {
    return stale_->stepped(landing_of(chunk, w, place_of_source(to.offset), position));
  }
  const std::uint32_t round = shape.layout.round_length(w);
  if (to.stage == Stage::aggregation) {
    if (position >= round) {
      return bit(chunk.bits + shape.reduced_bit(w, position - round));
    }
    return has_sum(chunk, w, std::max(to.offset, schedule_.step(w).first_sent), position);
  }
  if (position >= round) return bit(chunk.bits + shape.result_bit(w, 0, position - round));
  return has_result(chunk, w, position);
}

void HubExchange::advance(ChunkState& chunk, Stage stage, unsigned w) {
  const control::Offsets& targets = schedule_.step(w).targets_in(stage);
  for (unsigned r = targets.first; r < targets.end; ++r) advance_to(chunk, {stage, w, r});
}

void HubExchange::advance_to(ChunkState& chunk, const HubStream& to) {
  const std::uint32_t index = index_[chunk.number];
  const std::size_t number = number_of(to);
  HubSendStream& stream = sends_[number];
  std::uint32_t& ready = stream.ready[index];
  const std::uint32_t before = ready;
  while (ready < shape_of(chunk).length[to.step] && is_ready(chunk, to, ready)) {
    ++ready;
    ++stream.segments;
  }
  if (ready != before && !stream.woken) {
    stream.woken = true;
    woken_.push_back(static_cast<std::uint32_t>(number));
  }
  if (ready == stream.sent[index] || stream.queued[index]) return;
  stream.queued[index] = true;
  stream.queue[(stream.first + stream.queued_chunks++) % stream.queue.size()] = index;
}

// What comes back in a step goes out in those before it, and in a ring in the same one, too.
void HubExchange::advance_results(ChunkState& chunk, unsigned w) {
  if (chunk.spread != chunk.pushes) {  // the first one of the round: see Rounds
    chunk.spread = chunk.pushes;
    chunk.spread_kind = keys_[place_of(chunk).key].push.kind;
    chunk.spread_plane = keys_[place_of(chunk).key].push.plane;
    reset_sends(chunk, Stage::broadcast);
  }
  for (unsigned u = 0; u <= w; ++u) advance(chunk, Stage::broadcast, u);
}

std::optional<HubLabel> HubExchange::next(const HubStream& to) {
  HubSendStream& stream = sends_[number_of(to)];
  const auto pop = [&stream](std::uint32_t index) {
    stream.queued[index] = false;
    stream.first = (stream.first + 1) % static_cast<std::uint32_t>(stream.queue.size());
    --stream.queued_chunks;
  };
  // A hostile peer can end a round whose segments have not been taken.
  while (stream.queued_chunks != 0) {
    const std::uint32_t index = stream.queue[stream.first];
    if (stream.sent[index] < stream.ready[index]) break;
    pop(index);
  }
  if (stream.queued_chunks == 0) return std::nullopt;
  const std::uint32_t index = stream.queue[stream.first];
  const ChunkState& chunk = chunks_[index];
  const std::uint32_t position = stream.sent[index]++;
  --stream.segments;
  if (stream.sent[index] == stream.ready[index]) pop(index);
  if (to.stage == Stage::aggregation) {
    return HubLabel{chunk.number, position,    on_wire(chunk.opened),
                    chunk.kind,   chunk.plane, chunk.digest};
  }
  if (const StalePeers::Peer* peer = alone(chunk, to); peer != nullptr) {
    return HubLabel{chunk.number, position, on_wire(peer->opened), PushKind::gradients, 0, 0};
  }
  return HubLabel{chunk.number,      position,           on_wire(chunk.spread),
                  chunk.spread_kind, chunk.spread_plane, 0};
}

HubSegment HubExchange::segment(const HubStream& to, const HubLabel& label) const {
  const ChunkState& chunk = chunks_[index_[label.chunk]];
  const auto part =
      layout_of(chunk).part_sent(schedule_, to.stage, to.step, to.offset, label.position);
  const SegmentRange range =
      carried(to.stage, label.kind,
              layout_of(chunk).segment(schedule_, to.step, part.offset, part.position));
  if (stale_.has_value()) {
    return {label, stale_result(chunk, to.offset, label.position), range.bytes};
  }
  if (to.stage == Stage::aggregation && label.kind == PushKind::applied) {
    const HubNumbers* told = &keys_[place_of(chunk).key].told;
    return {label, reinterpret_cast<const std::uint8_t*>(told), range.bytes};
  }
  const std::uint8_t* values =
      to.stage == Stage::aggregation ? own_values(chunk) : spread_values(chunk, label);
  return {label, values + range.begin, range.bytes};
}

}  // namespace gradcube::dataplane
