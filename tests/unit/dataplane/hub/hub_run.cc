#include "tests/unit/dataplane/hub/hub_run.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "control/checkpoint/key_optimizers.h"
#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::dataplane {

using aggregation::DataType;
using control::Stage;

float read_value(DataType type, const std::uint8_t* values, std::uint64_t element) {
  if (type == DataType::float32) {
    float value = 0;
    std::memcpy(&value, values + element * sizeof(value), sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, values + element * sizeof(bits), sizeof(bits));
  return type == DataType::float16 ? aggregation::float16_to_float32(bits)
                                   : aggregation::bfloat16_to_float32(bits);
}

void write_value(DataType type, std::uint8_t* values, std::uint64_t element, float value) {
  if (type == DataType::float32) {
    std::memcpy(values + element * sizeof(value), &value, sizeof(value));
    return;
  }
  const std::uint16_t bits = type == DataType::float16 ? aggregation::float32_to_float16(value)
                                                       : aggregation::float32_to_bfloat16(value);
  std::memcpy(values + element * sizeof(bits), &bits, sizeof(bits));
}

namespace {

template <typename Function>
void for_each_target(const HubExchange& exchange, const Function& function) {
  const control::ThreadSchedule& schedule = exchange.schedule();
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      const control::Offsets& targets = schedule.step(w).targets_in(stage);
      for (unsigned r = targets.first; r < targets.end; ++r) function(HubStream{stage, w, r});
    }
  }
}

control::KeyOptimizers optimizers_of(const HubRunSettings& settings) {
  return control::parse_key_optimizers(
      control::optimizer_text(settings.optimizer) + settings.of_keys,
      control::ordered_keys(settings.keys, "test"), "test");
}

}  // namespace

HubRun::HubRun(HubRunSettings settings)
    : settings_(std::move(settings)),
      asked_(optimizers_of(settings_)),
      model_(control::ordered_keys(settings_.keys, "test"), asked_, settings_.plan,
             settings_.lcores, settings_.chunk_bytes, "test"),
      random_(settings_.seed) {
  for (unsigned rank = 0; rank < ranks(); ++rank) {
    Server& server = servers_.emplace_back();
    server.weights.resize(model_.bytes());
    server.pushed.resize(model_.keys().size());
    server.ended.resize(model_.keys().size());
    server.parts.resize(model_.keys().size());
    server.buffers.resize(trainers(rank));
    for (auto& buffers : server.buffers) {
      for (const control::HubKey& key : model_.keys()) buffers.emplace_back(key.bytes());
    }
    for (const control::hub::HubExecution& execution : model_.executions()) {
      HubExchangeContext context = {model_,
                                    execution,
                                    settings_.plan,
                                    rank,
                                    aggregation::select_kernels(256),
                                    settings_.segment_bytes,
                                    settings_.block_bytes,
                                    trainers(rank),
                                    settings_.staleness ? settings_.trainers : all_trainers(),
                                    settings_.aggregators != 0,
                                    settings_.staleness,
                                    settings_.accumulates,
                                    server.weights.data(),
                                    nullptr};
      const HubNeeds needs = HubExchange::needs(context);
      server.needed += needs.bytes;
      context.state = server.states.emplace_back(needs.state.elements()).data();
      server.exchanges.emplace_back(context);
    }
  }
}

void HubRun::run(unsigned rounds, const Value& value, const May& may) {
  // An action of a kind that was chosen at random; when each kind has had nothing to do often
  // enough, all are tried in turn.
  for (;;) {
    bool moved = false;
    for (unsigned i = 0; i < 64; ++i) {
      const unsigned rank = below(servers_.size());
      const unsigned kind = below(8);
      if (kind == 0) {
        moved = push_one(rank, rounds, value, may) || moved;
      } else if (kind < 4) {
        moved = send_one(rank, below(model_.executions().size())) || moved;
      } else if (!flying_.empty()) {
        deliver_one();
        moved = true;
      }
    }
    if (moved) continue;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
      moved = push_one(rank, rounds, value, may) || moved;
      for (std::size_t e = 0; e < model_.executions().size(); ++e) {
        moved = send_one(rank, e) || moved;
      }
    }
    if (!moved) return;
  }
}

bool HubRun::push_one(unsigned rank, unsigned rounds, const Value& value, const May& may) {
  Server& server = servers_[rank];
  if (trainers(rank) == 0) return false;
  const unsigned first = below(model_.keys().size());
  for (std::uint32_t i = 0; i < model_.keys().size(); ++i) {
    const std::uint32_t key = (first + i) % model_.keys().size();
    const unsigned round = server.pushed[key];
    if (round == rounds || server.ended[key] != round) continue;
    if (may && !may(rank, key, round)) continue;
    HubPush push;
    push.kind = round == 0 ? PushKind::weights : PushKind::gradients;
    if (kind) push.kind = kind(rank, round);
    push.learning_rate = rate ? rate(rank, round) : asked_of(key).learning_rate;
    if (push.kind == PushKind::applied) {
      push.digest = std::bit_cast<std::uint32_t>(scale ? scale(rank, round) : 1.0F);
    }
    if (push.kind == PushKind::saved || push.kind == PushKind::loaded) {
      push.plane = static_cast<std::uint8_t>(plane(round));
    }
    if (push.kind == PushKind::restored || push.kind == PushKind::loaded) {
      push.steps = steps ? steps(rank) : 0;
      if (arrays) push.arrays = arrays(rank, key);
    }
    const control::HubKey& of = model_.keys()[key];
    for (unsigned t = 0; t < trainers(rank); ++t) {
      push.buffers[t] = server.buffers[t][key].data();
      for (std::uint64_t element = 0; element < of.elements; ++element) {
        write_value(of.type, push.buffers[t], element, value(rank, t, key, element, round));
      }
    }
    const std::uint8_t* given = bytes ? bytes(rank, key, round) : nullptr;
    if (given != nullptr) std::memcpy(push.buffers[0], given, of.bytes());
    ++server.pushed[key];
    server.parts[key] = 0;
    for (std::size_t e = 0; e < server.exchanges.size(); ++e) {
      server.exchanges[e].push(key, push);
      see_ends(rank, e);
    }
    return true;
  }
  return false;
}

// A few chunks at a time.
bool HubRun::send_one(unsigned rank, std::size_t execution) {
  HubExchange& exchange = servers_[rank].exchanges[execution];
  if (exchange.begin(1 + below(20'000))) {
    see_ends(rank, execution);
    return true;
  }
  const control::ThreadSchedule& schedule = exchange.schedule();
  std::vector<HubStream> streams;
  for_each_target(exchange, [&streams](const HubStream& to) { streams.push_back(to); });
  std::shuffle(streams.begin(), streams.end(), random_);
  for (const HubStream& to : streams) {
    if (may_send && !may_send(rank, schedule.peer(to.step, to.offset))) continue;
    const std::uint64_t waited = exchange.waiting(to);
    const std::optional<HubLabel> label = exchange.next(to);
    if (waited != exchange.waiting(to) + (label.has_value() ? 1 : 0) ||
        (waited == 0) == label.has_value()) {
      ++miscounted_;
    }
    if (!label.has_value()) continue;
    const control::Rank peer = schedule.peer(to.step, to.offset);
    flying_.push_back({rank, to, peer, execution,
                       seen_from(servers_[peer].exchanges[execution], to, rank), *label});
    return true;
  }
  return false;
}

HubStream HubRun::seen_from(const HubExchange& at, const HubStream& to,
                            control::Rank sender) const {
  const control::Offsets& sources = at.schedule().step(to.step).sources_in(to.stage);
  for (unsigned r = sources.first; r < sources.end; ++r) {
    if (at.schedule().peer(to.step, r) == sender) return {to.stage, to.step, r};
  }
  throw std::logic_error("it is sent to a server that does not expect it");
}

void HubRun::deliver_one() {
  std::swap(flying_[below(flying_.size())], flying_.back());
  const Packet packet = std::move(flying_.back());
  flying_.pop_back();
  HubExchange& exchange = servers_[packet.rank].exchanges[packet.execution];
  const HubSegment segment =
      servers_[packet.sender].exchanges[packet.execution].segment(packet.to, packet.label);
  const std::vector<std::uint8_t> payload(segment.payload, segment.payload + segment.bytes);
  if (before) before({exchange, packet.from, packet.label, payload});
  if (!exchange.arrive(packet.from, packet.label, payload.data(), segment.bytes)) {
    ++refused_;
    if (sends_again) flying_.push_back(packet);
  }
  see_ends(packet.rank, packet.execution);
}

void HubRun::see_ends(unsigned rank, std::size_t execution) {
  Server& server = servers_[rank];
  while (const std::optional<std::uint32_t> key = server.exchanges[execution].next_ended()) {
    if (++server.parts[*key] == server.exchanges.size()) ++server.ended[*key];
  }
}

bool HubRun::disagrees(unsigned rank) const { return disagreement(rank).has_value(); }

std::optional<std::uint32_t> HubRun::disagreement(unsigned rank) const {
  for (const HubExchange& exchange : servers_[rank].exchanges) {
    if (exchange.disagreement().has_value()) return exchange.disagreement();
  }
  return std::nullopt;
}

std::uint64_t HubRun::memory(unsigned rank) const {
  std::uint64_t bytes = 0;
  for (const HubExchange& exchange : servers_[rank].exchanges) bytes += exchange.memory();
  return bytes;
}

std::size_t HubRun::longest_queue() const {
  std::size_t longest = 0;
  for (const Server& server : servers_) {
    for (const HubExchange& exchange : server.exchanges) {
      for_each_target(exchange, [&](const HubStream& to) {
        longest = std::max<std::size_t>(longest, exchange.waiting(to));
      });
    }
  }
  return longest;
}

std::uint64_t HubRun::most_segments() const {
  std::uint64_t most = 0;
  for (const HubExchange& exchange : servers_[0].exchanges) {
    std::uint64_t segments = 0;
    for (const control::hub::Chunk& chunk : model_.chunks()) {
      const HubShape shape(exchange.schedule(), chunk.bytes, settings_.segment_bytes,
                           settings_.block_bytes);
      segments += *std::max_element(shape.length.begin(), shape.length.end());
    }
    most = std::max(most, segments);
  }
  return most;
}

std::vector<float> HubRun::weights(unsigned rank, std::uint32_t key) const {
  std::vector<float> values;
  const control::HubKey& of = model_.keys()[key];
  const std::uint8_t* begin = servers_[rank].weights.data() + model_.begin_of_key(key);
  for (std::uint64_t i = 0; i < of.elements; ++i) values.push_back(read_value(of.type, begin, i));
  return values;
}

}  // namespace gradcube::dataplane
