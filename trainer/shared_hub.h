// What a trainer and its daemon tell each other of a hub beside its rounds: the table by which a
// trainer asks for one (MakeHub of shared_layout.h), and what the daemon's memory of it says.
#ifndef GRADCUBE_TRAINER_SHARED_HUB_H_
#define GRADCUBE_TRAINER_SHARED_HUB_H_

#include <cstdint>

namespace gradcube::shared {

inline constexpr std::uint32_t kSynchronous = UINT32_MAX;
inline constexpr std::uint32_t kMostAggregators = 20;  // as a plan has threads

// A hub's table: this, `optimizer_bytes` of text, `aggregators` numbers of servers without trainers
// of the job, in 32 bits, and `keys` times a HubTableKey with the bytes of its name behind it.
// Nothing is aligned. The text is control/checkpoint/key_optimizers.h's.
struct HubTable {
  std::uint64_t chunk_bytes;
  std::uint32_t keys;
  std::uint32_t optimizer_bytes;
  std::uint32_t aggregators;  // how many
  // With aggregators: how many rounds a server may be ahead of the slowest one, or kSynchronous
  // for rounds that all servers have together.
  std::uint32_t staleness;
  std::uint32_t accumulates;  // 1: gradients may be accumulated and applied; or 0
  std::uint32_t reserved;     // 0
};

struct HubTableKey {
  std::uint64_t elements;
  std::uint32_t name_bytes;
  std::uint32_t dtype;  // gradcube_dtype, of the gradients
};

// What a server owns of its hub. It lies in the hub's memory behind the weights, with `ranges`
// times a HubRange behind it, by key and first element, without overlap. The daemon writes it
// before hub_made, and its end later.
struct HubHeader {
  std::uint32_t ranges;
  std::uint32_t rule;  // aggregation::OptimizerRule
  // lr, momentum, dampening, beta1, beta2, eps, weight-decay, clip.
  double settings[8];
  // How the hub has ended: a GRADCUBE_E... code, and the number of the notice that says why, which
  // is written before it; 0 while the hub is there. The weights stay as the last step left them.
  std::int32_t end_code;
  std::uint32_t end_notice;
  // Not 0 while all of the memory is there: whoever has copied some of it looks again.
  std::uint32_t readable;
  std::uint32_t reserved;
};

// Where the daemon has what it owns of a key, from the begin of the hub's memory: the weights in
// float32 (of a key of float32, those of which all are read), and the optimizer's state; 0 where it
// has none. Read them while no push of the key by this server's trainers is in flight.
struct HubRange {
  std::uint32_t key;  // by name
  std::uint32_t reserved;
  std::uint64_t first_element;
  std::uint64_t elements;
  std::uint64_t arrays[3];
};

inline constexpr std::uint64_t kMostHubTableBytes = std::uint64_t{1} << 25;

}  // namespace gradcube::shared

#endif  // GRADCUBE_TRAINER_SHARED_HUB_H_
