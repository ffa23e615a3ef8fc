// A hub on the servers of a plan, without engines: what is sent arrives in a random order, and
// trainers push keys when they like. For tests of HubExchange.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_HUB_HUB_RUN_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_HUB_HUB_RUN_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "control/checkpoint/key_optimizers.h"
#include "dataplane/hub/hub_exchange.h"

namespace gradcube::dataplane {

struct HubRunSettings {
  control::Plan plan;
  std::vector<control::HubKey> keys;
  aggregation::OptimizerSettings optimizer{};
  std::string of_keys = "";  // ";*bias:lr=1"
  unsigned trainers = 1;     // of each server that has any
  unsigned aggregators = 0;  // the first ranks, which have none
  std::optional<std::uint32_t> staleness = {};
  bool accumulates = false;
  unsigned lcores = 1;
  std::uint64_t chunk_bytes = 1024;
  std::uint32_t segment_bytes = 256;
  std::uint32_t block_bytes = UINT32_MAX;
  std::uint64_t seed = 1;
};

class HubRun {
 public:
  // The value of a trainer's element that is pushed in a round, from 0.
  using Value = std::function<float(unsigned rank, unsigned trainer, std::uint32_t key,
                                    std::uint64_t element, unsigned round)>;
  // Whether a rank's trainers may push the key for this round now.
  using May = std::function<bool(unsigned rank, std::uint32_t key, unsigned round)>;

  explicit HubRun(HubRunSettings settings);

  const control::hub::HubModel& model() const { return model_; }
  // What the run's settings ask for, whatever the model makes of it.
  const aggregation::OptimizerSettings& asked_of(std::uint32_t key) const {
    return asked_.of_keys[key];
  }
  control::Rank ranks() const { return settings_.plan.ranks(); }
  // That has trainers.
  control::Rank first() const { return settings_.aggregators; }
  unsigned trainers(unsigned rank) const { return rank < first() ? 0 : settings_.trainers; }

  std::uint64_t owned(unsigned rank) const {
    std::uint64_t elements = 0;
    for (const HubExchange& exchange : servers_[rank].exchanges) elements += exchange.owned();
    return elements;
  }
  unsigned all_trainers() const { return settings_.trainers * (ranks() - first()); }

  // What a rank's trainers push in a round, if not the usual.
  std::function<PushKind(unsigned rank, unsigned round)> kind = {};
  // Of what is saved or loaded: the plane; and what a rank's first trainer has in its buffer.
  std::function<unsigned(unsigned round)> plane = {};
  std::function<const std::uint8_t*(unsigned rank, std::uint32_t key, unsigned round)> bytes = {};
  // Whether a rank may send to another now, if not always.
  std::function<bool(unsigned from, unsigned to)> may_send = {};
  // With which learning rate, if not the optimizer's.
  std::function<double(unsigned rank, unsigned round)> rate = {};
  // Of what is applied: with which scale, if not 1.
  std::function<float(unsigned rank, unsigned round)> scale = {};
  // Of what is restored: the arrays of a key at a rank. Of that and of what is loaded: the steps.
  std::function<std::array<const float*, kHubArrays>(unsigned rank, std::uint32_t key)> arrays = {};
  std::function<std::uint64_t(unsigned rank)> steps = {};
  bool disagrees(unsigned rank) const;
  // The key of it, as one of the rank's executors tells it.
  std::optional<std::uint32_t> disagreement(unsigned rank) const;
  // Segments that wait for a peer, and as many as there are for one in a round of all keys.
  std::size_t longest_queue() const;
  std::uint64_t most_segments() const;
  // How often waiting() was not what next() gave.
  unsigned miscounted() const { return miscounted_; }
  // Of a rank's exchanges, in bytes: what they have, and what they said before that they need.
  std::uint64_t memory(unsigned rank) const;
  std::uint64_t needed(unsigned rank) const { return servers_[rank].needed; }

  // Pushes weights in round 0 and gradients in those that follow, until each key has been pushed
  // so often at every rank for which `may` holds, and nothing moves any more.
  void run(unsigned rounds, const Value& value, const May& may = {});

  // Rounds of a key that have ended at a rank.
  unsigned ended(unsigned rank, std::uint32_t key) const { return servers_[rank].ended[key]; }
  std::vector<float> weights(unsigned rank, std::uint32_t key) const;
  // Of the key's last accumulated round that has ended at a rank, as its trainers are told.
  double squares(unsigned rank, std::uint32_t key) const {
    double sum = 0;
    for (const HubExchange& exchange : servers_[rank].exchanges) sum += exchange.squares(key);
    return sum;
  }
  // Calls use(HubOwnedRange) for all that a rank owns.
  template <typename Use>
  void for_each_owned(unsigned rank, const Use& use) const {
    for (const HubExchange& exchange : servers_[rank].exchanges) exchange.for_each_owned(use);
  }
  std::vector<std::uint8_t> weight_bytes(unsigned rank) const { return servers_[rank].weights; }

  // What was refused of all that was sent; of honest servers nothing is.
  unsigned refused() const { return refused_; }

  // What is about to arrive; `before`, if it is set, may do with the exchange what it likes.
  struct Arrival {
    HubExchange& exchange;
    HubStream from;
    HubLabel label;
    std::vector<std::uint8_t> payload;
  };
  std::function<void(const Arrival&)> before = {};
  // Whether what is refused is sent again, until it is taken.
  bool sends_again = false;

 private:
  struct Server {
    std::deque<HubExchange> exchanges;  // by execution
    std::vector<std::uint8_t> weights;
    std::vector<std::vector<std::vector<std::uint8_t>>> buffers;  // by trainer and key
    std::vector<unsigned> pushed;                                 // rounds, by key
    std::vector<unsigned> ended;
    std::vector<unsigned> parts;  // executions in which a key's round has ended
    std::uint64_t needed = 0;
    std::deque<std::vector<float>> states;  // of each executor
  };
  // Its payload is read as it arrives: what was lost before was sent again.
  struct Packet {
    unsigned sender;
    HubStream to;
    unsigned rank;
    std::size_t execution;
    HubStream from;
    HubLabel label;
  };

  bool push_one(unsigned rank, unsigned rounds, const Value& value, const May& may);
  bool send_one(unsigned rank, std::size_t execution);
  void deliver_one();
  void see_ends(unsigned rank, std::size_t execution);
  HubStream seen_from(const HubExchange& at, const HubStream& to, control::Rank sender) const;
  unsigned below(std::size_t count) {
    return static_cast<unsigned>(std::uniform_int_distribution<std::size_t>(0, count - 1)(random_));
  }

  HubRunSettings settings_;
  const control::KeyOptimizers asked_;
  control::hub::HubModel model_;
  std::deque<Server> servers_;
  std::vector<Packet> flying_;
  std::mt19937_64 random_;
  unsigned refused_ = 0;
  unsigned miscounted_ = 0;
};

// An element of a buffer, in a type that has optimizers.
float read_value(aggregation::DataType type, const std::uint8_t* values, std::uint64_t element);
void write_value(aggregation::DataType type, std::uint8_t* values, std::uint64_t element,
                 float value);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_HUB_HUB_RUN_H_
