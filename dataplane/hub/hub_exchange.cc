// How a hub's rounds begin and end at a server, and what becomes of what arrives.

#include "dataplane/hub/hub_exchange.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

#include "control/plan/base/byte_range.h"

namespace gradcube::dataplane {

using aggregation::DataType;

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace

HubExchange::HubExchange(const HubExchangeContext& context)
    : context_(context),
      schedule_(context.plan, context.rank, context.execution.thread, kWholeChunk),
      keys_(context.model.keys().size()),
      index_(context.model.chunks().size(), kNone),
      beginning_{std::vector<std::uint32_t>(context.model.keys().size())},
      ended_{std::vector<std::uint32_t>(context.model.keys().size())} {
  const bool sends = schedule_.step(0).send_streams.count() != 0;
  if (context_.trainers == 0 && (schedule_.steps() != 1 || sends)) {
    throw std::invalid_argument("a server without trainers can only be the root of one step");
  }
  std::size_t most_sources = std::max(2U, context_.trainers);
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    first_peer_[w + 1] = first_peer_[w] + schedule_.step(w).peers;
    most_sources = std::max<std::size_t>(most_sources, schedule_.step(w).radix);
  }
  sources_.resize(most_sources);
  allocate();
}

void HubExchange::allocate() {
  std::map<std::uint64_t, std::uint32_t> shape_of_bytes;
  std::uint64_t bits = 0;
  std::uint64_t counts = 0;
  std::uint64_t landing = 0;
  std::uint64_t owned = 0;
  std::uint64_t norms = 0;
  std::map<std::uint32_t, std::uint32_t> slots;  // by their bytes
  chunks_.reserve(context_.execution.chunks.size());
  for (const std::uint32_t number : context_.execution.chunks) {
    const control::hub::Chunk& place = context_.model.chunks()[number];
    const auto [found, is_new] =
        shape_of_bytes.try_emplace(place.bytes, static_cast<std::uint32_t>(shapes_.size()));
    if (is_new) {
      shapes_.emplace_back(schedule_, place.bytes, context_.segment_bytes, context_.block_bytes);
    }
    const HubShape& shape = shapes_[found->second];
    const auto index = static_cast<std::uint32_t>(chunks_.size());
    KeyState& key = keys_[place.key];
    if (key.chunks++ == 0) key.first_chunk = index;
    index_[number] = index;
    const DataType type = context_.model.keys()[place.key].type;
    chunks_.push_back({.number = number,
                       .shape = found->second,
                       .bits = bits,
                       .counts = counts,
                       .landing = landing,
                       .state = owned,
                       .norms = norms});
    bits += shape.bits;
    counts += shape.counts;
    norms += control::units_of(place.bytes).count;
    landing += shape.landing_places;
    for (unsigned w = 0; w < schedule_.steps(); ++w) {
      if (shape.landings[w] != 0) slots[shape.slot[w]] += shape.landings[w];
    }
    owned += shape.owned.size() / aggregation::element_bytes(type);
  }
  bits_.resize(bits / kWordBits);
  counts_.resize(counts);
  landed_.resize(landing);
  find_pools(slots);
  if (context_.staleness.has_value() && context_.trainers == 0) {
    stale_.emplace(*context_.staleness, chunks_.size(), schedule_.step(0).peers, landing);
  }
  find_arrays();
  if (context_.accumulates) norms_.resize(norms);
  if (context_.accumulates && state_.has[0]) rounded_.resize(context_.segment_bytes);
  sends_.resize(control::kStages * first_peer_[schedule_.steps()]);
  woken_.reserve(sends_.size());
  for (HubSendStream& stream : sends_) {
    stream.ready.resize(chunks_.size());
    stream.sent.resize(chunks_.size());
    stream.queue.resize(chunks_.size());
    stream.queued.resize(chunks_.size());
  }
}

void HubExchange::find_pools(const std::map<std::uint32_t, std::uint32_t>& slots) {
  for (const auto& [slot_bytes, count] : slots) pools_.emplace_back(slot_bytes, count);
  for (HubShape& shape : shapes_) {
    for (unsigned w = 0; w < schedule_.steps(); ++w) {
      shape.pool[w] =
          static_cast<std::uint32_t>(std::distance(slots.begin(), slots.find(shape.slot[w])));
    }
  }
}

void HubExchange::find_arrays() {
  state_ = needs(context_).state;
  float* next = context_.state;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (!state_.has[i]) continue;
    arrays_[i] = next;
    next += state_.stride();
  }
}

// Rounds ---------------------------------------------------------------------

void HubExchange::push(std::uint32_t number, const HubPush& push) {
  KeyState& key = keys_[number];
  key.push = push;
  key.told = {static_cast<float>(push.learning_rate),
              std::bit_cast<float>(static_cast<std::uint32_t>(push.digest))};
  key.left = key.chunks;
  ++pushed_;
  if (key.chunks == 0) return tell_end(number);
  count_step(number);
  key.begun = 0;
  beginning_.add(number);
}

bool HubExchange::begin(std::uint64_t bytes) {
  if (beginning_.count == 0) return false;
  constexpr std::uint64_t kOverhead = 4096;  // of a chunk, as long as copying so many bytes takes
  std::uint64_t worked = 0;
  while (beginning_.count != 0 && worked < bytes) {
    KeyState& key = keys_[beginning_.keys[beginning_.first]];
    ChunkState& chunk = chunks_[key.first_chunk + key.begun++];
    if (key.begun == key.chunks) beginning_.remove_first();
    begin_chunk(chunk);
    const std::uint64_t added = context_.trainers < 2 ? 0 : context_.trainers;
    worked += kOverhead + place_of(chunk).bytes * added;
  }
  return true;
}

void HubExchange::begin_chunk(ChunkState& chunk) {
  const HubPush& push = keys_[place_of(chunk).key].push;
  const std::uint32_t digest = digest_of(push);
  ++chunk.pushes;
  std::fill_n(bits_.begin() + first_word(chunk.bits + shape_of(chunk).gathering_bits),
              (shape_of(chunk).bits - shape_of(chunk).gathering_bits) / kWordBits, 0);
  chunk.results = 0;
  if (chunk.opened != chunk.pushes) {
    open_round(chunk, push.kind, push.plane, digest);
  } else if (chunk.kind != push.kind || chunk.plane != push.plane || chunk.digest != digest) {
    return disagree(chunk);  // nothing goes out: others would take it for what they have pushed
  }
  chunk.pushed = true;
  add_local(chunk);
  advance(chunk, Stage::aggregation, 0);
  if (schedule_.step(0).sums) {
    for (std::uint32_t position = 0; position < shape_of(chunk).length[0]; ++position) {
      reduce_if_complete(chunk, 0, position);
    }
  }
  end_if_complete(chunk);
}

// The first one counts.
void HubExchange::disagree(const ChunkState& chunk) {
  if (!disagreement_.has_value()) disagreement_ = place_of(chunk).key;
}

// Forgets what the aggregation of the round before has left. All of it has been used: see Rounds.
void HubExchange::open_round(ChunkState& chunk, PushKind kind, std::uint8_t plane,
                             std::uint32_t digest) {
  const HubShape& shape = shape_of(chunk);
  ++chunk.opened;
  chunk.kind = kind;
  chunk.plane = plane;
  chunk.digest = digest;
  chunk.loader = 0;
  chunk.pushed = false;
  chunk.reductions = 0;
  std::fill_n(bits_.begin() + first_word(chunk.bits), shape.gathering_bits / kWordBits, 0);
  std::fill_n(counts_.begin() + static_cast<std::ptrdiff_t>(chunk.counts), shape.counts, 0);
  reset_sends(chunk, Stage::aggregation);
}

bool HubExchange::may_open(const ChunkState& chunk) const {
  if (chunk.opened == 0) return true;
  return chunk.reductions == shape_of(chunk).reductions && all_sent(chunk, Stage::aggregation);
}

void HubExchange::reset_sends(const ChunkState& chunk, Stage stage) {
  const std::size_t index = index_[chunk.number];
  for_each_send(stage, [index](HubSendStream& stream) { stream.reset(index); });
}

bool HubExchange::all_sent(const ChunkState& chunk, Stage stage) const {
  const std::size_t index = index_[chunk.number];
  bool all = true;
  for (unsigned w = 0; w < schedule_.steps(); ++w) {
    const control::Offsets& targets = schedule_.step(w).targets_in(stage);
    for (unsigned r = targets.first; r < targets.end; ++r) {
      const HubSendStream& stream = sends_[number_of({stage, w, r})];
      all = all && stream.sent[index] == shape_of(chunk).length[w];
    }
  }
  return all;
}

// Arrivals -------------------------------------------------------------------

bool HubExchange::arrive(const HubStream& from, const HubLabel& label, const std::uint8_t* payload,
                         std::uint32_t bytes) {
  if (label.chunk >= index_.size() || index_[label.chunk] == kNone) return false;
  if (from.step >= schedule_.steps()) return false;
  if (!schedule_.step(from.step).sources_in(from.stage).contains(from.offset)) return false;
  ChunkState& chunk = chunks_[index_[label.chunk]];
  if (label.position >= shape_of(chunk).length[from.step]) return false;
  const auto part =
      layout_of(chunk).part_received(schedule_, from.stage, from.step, from.offset, label.position);
  const SegmentRange range =
      carried(from.stage, label.kind,
              layout_of(chunk).segment(schedule_, from.step, part.offset, part.position));
  if (range.bytes != bytes || !may_come(chunk, label)) return false;
  return from.stage == Stage::aggregation ? take_contribution(chunk, from, label, payload, bytes)
                                          : take_result(chunk, from, label, payload, range);
}

bool HubExchange::take_contribution(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                                    const std::uint8_t* payload, std::uint32_t bytes) {
  if (stale_.has_value()) {
    if (label.kind == PushKind::gradients) {
      return take_alone(chunk, from, label, payload, bytes);
    }
    if (!is_together(chunk, from, label)) return false;
  }
  if (label.kind == PushKind::applied && context_.trainers == 0 && bytes == 0) return false;
  if (label.round == on_wire(chunk.opened + 1) && may_open(chunk)) {
    const bool is_loaded = label.kind == PushKind::loaded;
    open_round(chunk, label.kind, label.plane, is_loaded ? 0 : label.digest);
    if (context_.trainers == 0) open_without_trainers(chunk, payload);
  } else if (label.round != on_wire(chunk.opened) || chunk.opened == 0) {
    return false;
  }
  const HubShape& shape = shape_of(chunk);
  const unsigned place =
      from.offset - schedule_.step(from.step).sources_in(Stage::aggregation).first;
  const std::uint64_t arrived = chunk.bits + shape.arrived_bit(from.step, place, label.position);
  if (bit(arrived)) return false;
  if (!fits(chunk, from, label, payload)) {
    disagree(chunk);
    return false;
  }
  set_bit(arrived);
  ++counts_[chunk.counts + shape.counts_at[from.step] + label.position];
  const std::uint64_t landing = landing_of(chunk, from.step, place, label.position);
  arriving_ = {landing, payload};
  reduce_if_complete(chunk, from.step, label.position);
  arriving_ = {};
  if (bytes != 0 && !bit(chunk.bits + shape.reduced_bit(from.step, label.position))) {
    LandingSlots& pool = pools_[shape.pool[from.step]];
    landed_[landing] = pool.take();
    std::memcpy(pool.at(landed_[landing]), payload, bytes);
  }
  end_if_complete(chunk);
  return true;
}

bool HubExchange::take_result(ChunkState& chunk, const HubStream& from, const HubLabel& label,
                              const std::uint8_t* payload, const SegmentRange& range) {
  if (chunk.ended == chunk.pushes || label.round != on_wire(chunk.pushes)) return false;
  const HubPush& push = keys_[place_of(chunk).key].push;
  if (label.kind != push.kind || label.plane != push.plane) return false;
  const unsigned place = from.offset - schedule_.step(from.step).sources_in(Stage::broadcast).first;
  const std::uint64_t here =
      chunk.bits + shape_of(chunk).result_bit(from.step, place, label.position);
  if (bit(here)) return false;
  set_bit(here);
  if (range.bytes != 0) {
    std::memcpy(results_of(chunk, label.kind) + range.begin, payload, range.bytes);
  }
  ++chunk.results;
  advance_results(chunk, from.step);
  end_if_complete(chunk);
  return true;
}

std::vector<HubStream> HubExchange::missing(std::uint32_t number) const {
  const KeyState& key = keys_[number];
  const auto lacks = [&](const ChunkState& chunk, std::uint64_t first, unsigned w) {
    for (std::uint32_t position = 0; position < shape_of(chunk).length[w]; ++position) {
      if (!bit(chunk.bits + first + position)) return true;
    }
    return false;
  };
  std::vector<HubStream> missing;
  for (std::uint32_t i = key.first_chunk; i < key.first_chunk + key.chunks; ++i) {
    const ChunkState& chunk = chunks_[i];
    if (chunk.ended == chunk.pushes) continue;
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      // What arrives may be of the next round already.
      if (stage == Stage::aggregation && chunk.opened != chunk.pushes) continue;
      for (unsigned w = 0; w < schedule_.steps(); ++w) {
        const control::Offsets& sources = schedule_.step(w).sources_in(stage);
        for (unsigned r = sources.first; r < sources.end; ++r) {
          const std::uint64_t first = stage == Stage::aggregation
                                          ? shape_of(chunk).arrived_bit(w, r - sources.first, 0)
                                          : shape_of(chunk).result_bit(w, r - sources.first, 0);
          if (lacks(chunk, first, w)) missing.push_back({stage, w, r});
        }
      }
    }
    if (!missing.empty()) break;
  }
  return missing;
}

// Ends -----------------------------------------------------------------------

void HubExchange::end_if_complete(ChunkState& chunk) {
  const HubShape& shape = shape_of(chunk);
  if (chunk.ended == chunk.pushes || chunk.results != shape.results) return;
  if (chunk.opened == chunk.pushes && chunk.reductions != shape.reductions) return;
  ++chunk.ended;
  const std::uint32_t key = place_of(chunk).key;
  if (context_.trainers == 0) return;
  if (keys_[key].push.kind == PushKind::accumulated) add_squares(chunk);
  if (--keys_[key].left == 0) tell_end(key);
}

void HubExchange::tell_end(std::uint32_t key) { ended_.add(key); }

std::optional<std::uint32_t> HubExchange::next_ended() {
  if (ended_.count == 0) return std::nullopt;
  const std::uint32_t key = ended_.keys[ended_.first];
  ended_.remove_first();
  --pushed_;
  return key;
}

}  // namespace gradcube::dataplane
