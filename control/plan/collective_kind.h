// The kinds of collective that a plan runs, each in place on one buffer per rank of N ranks.
//
//   all_reduce      every rank's buffer ends as the reduction of all
//   reduce_scatter  the buffer is N chunks of equal size; chunk r of rank r ends as the reduction
//                   of all ranks' chunks r
//   all_gather      the buffer is N chunks of equal size; chunk r of rank r is its input, and every
//                   buffer ends with all of them
//   broadcast       every buffer ends as the root's
//   reduce          the root's buffer ends as the reduction of all
//   barrier         an all_reduce of an empty buffer: it ends when every rank has begun
//
// What a collective does not define is scratch: the other chunks after a reduce_scatter, and the
// buffers of the ranks that are not the root after a reduce, hold partial results.
//
// The numbers are those of the wire and of the shared memory. Plain values.
#ifndef GRADCUBE_CONTROL_PLAN_COLLECTIVE_KIND_H_
#define GRADCUBE_CONTROL_PLAN_COLLECTIVE_KIND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "control/plan/base/stage.h"

namespace gradcube::control {

enum class CollectiveKind : std::uint8_t {
  all_reduce = 0,
  reduce_scatter = 1,
  all_gather = 2,
  broadcast = 3,
  reduce = 4,
  barrier = 5,
};

// By number: each kind at its own.
inline constexpr std::array<CollectiveKind, 6> kCollectiveKinds = {
    CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
    CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::barrier};

// In sentences, and as C and command lines spell it.
struct CollectiveKindNames {
  std::string_view text;
  std::string_view call;
};
inline constexpr std::array<CollectiveKindNames, kCollectiveKinds.size()> kCollectiveKindNames = {{
    {"all-reduce", "allreduce"},
    {"reduce-scatter", "reduce_scatter"},
    {"all-gather", "allgather"},
    {"broadcast", "broadcast"},
    {"reduce", "reduce"},
    {"barrier", "barrier"},
}};
constexpr const CollectiveKindNames& names_of(CollectiveKind kind) {
  return kCollectiveKindNames[static_cast<std::size_t>(kind)];
}
constexpr std::string_view collective_kind_name(CollectiveKind kind) { return names_of(kind).text; }

// The kind with that number. Nothing if there is none.
constexpr std::optional<CollectiveKind> collective_kind_numbered(std::uint64_t number) {
  if (number >= kCollectiveKinds.size()) return std::nullopt;
  return kCollectiveKinds[number];
}

// Whether the stage has any segments. The streams of the other stage have no length.
constexpr bool has_stage(CollectiveKind kind, Stage stage) {
  return stage == Stage::aggregation ? kind != CollectiveKind::all_gather
                                     : kind != CollectiveKind::reduce_scatter;
}

// Whether the buffer is a chunk for each rank, in the order of the ranks.
constexpr bool is_rank_ordered(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
}

// Whether one rank is the root.
constexpr bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

// Whether the aggregation stage adds. In a broadcast it only passes on what the root has.
constexpr bool reduces(CollectiveKind kind) {
  return kind != CollectiveKind::all_gather && kind != CollectiveKind::broadcast;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_COLLECTIVE_KIND_H_
