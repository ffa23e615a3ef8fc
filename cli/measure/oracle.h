// What a collective must yield at a rank, to the last bit: every rank's contribution, combined in
// the plan's order.
//
// The reference is written from the words of the paper. It shares with the data path only the
// plan's byte ranges and orders of steps and the scalar kernels, whose one reduce defines the
// arithmetic (aggregation/kernels.h, docs/arithmetic.md):
//
//   Thread t's part of the gradient is reduced in steps. Aggregation step 0 reduces, for each
//   setting of the other digits, the n contributions of the ranks that differ in the digit of step
//   0, in the order of that digit; step 1 reduces those n partial results along its own digit; and
//   so on until one value is left. In a step that is a ring, what ends at digit o is added as it
//   travels: o+1 first, then o+2 and so on to o, in n-1 reduces of two. Each reduce rounds to the
//   element type once (16-bit floats) or at each addition (the others). An average of 16-bit floats
//   is a mean of means: each reduce returns the mean of its n values, and in a ring counts the mean
//   of m values that has come round m times. An average of any other type divides the last value by
//   the number of ranks.
//
// Where each server has several trainers, a rank of the plan is a server, and its contribution is
// that of its trainers, reduced in one reduce by their numbers there, before step 0.
//
// In a step of the pattern root one rank reduces all n, in the order of the digits, for itself and
// every later step: what it reduces is the same whatever digit an element would end at.
//
// The threads' parts are those of the whole gradient; in a reduce-scatter, those of each chunk,
// unless the plan has a step of the pattern root. An all-gather and a broadcast copy contributions.
//
// Of a reproducible collective the order is of no matter: carriers of all ranks are added in the
// order of the ranks (aggregation/reproducible.h).
//
// Elements are computed in blocks, shorter ones where a step has more sources. So a call needs less
// than two megabytes for a gradient of any size (most_bytes()), and each thread has its own. Const
// calls may be made by several threads at once.
#ifndef GRADCUBE_CLI_MEASURE_ORACLE_H_
#define GRADCUBE_CLI_MEASURE_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "aggregation/element.h"
#include "aggregation/kernels.h"
#include "control/plan/base/plan.h"
#include "control/plan/collective_kind.h"

namespace gradcube::cli {

// All ranks below are those of trainers (control/plan/local_stage.h).
//
// Writes the elements [first, first + length) of a rank's contribution to `out`. The numbers count
// from the begin of the rank's buffer, also where its contribution is one chunk of it.
using Contribution =
    std::function<void(std::uint32_t rank, std::size_t first, std::size_t length, void* out)>;

// Takes the elements [first, first + length) that are expected.
using ExpectedBlock =
    std::function<void(std::size_t first, std::size_t length, const void* expected)>;

struct OracleCollective {
  control::CollectiveKind kind = control::CollectiveKind::all_reduce;
  aggregation::DataType type{};
  aggregation::Operation operation{};
  std::size_t count = 0;  // elements of the whole buffer
  control::Rank root = 0;
  // If the kind is rank-ordered: whose chunks are where, by the rank of a server; null: each rank's
  // at its own number. Must outlive the oracle.
  const control::Rank* chunk_of_rank = nullptr;
  bool reproducible = false;  // then carrier_of() has a value for type, operation and trainers
};

class Oracle {
 public:
  // Of all sources of a step together, in one block: so they stay in the cache.
  static constexpr std::size_t kBlockElements = 8192;

  // What a call of for_each_block() takes at most, beside the caller's own.
  static std::size_t most_bytes(const control::Plan& plan);

  // The plan must outlive the oracle. Throws std::invalid_argument when the kind is rank-ordered
  // and `count` is no multiple of the trainers, or the root is none of them.
  Oracle(const control::Plan& plan, const OracleCollective& collective);

  // Calls check(first, length, expected) for consecutive blocks that together are those elements of
  // [begin, end) of the rank's buffer that the collective defines: all of them, at the root of a
  // reduce alone, or of a reduce-scatter the rank's chunk. `expected` is valid during the call
  // only. Throws std::overflow_error where an average of integers overflows: the collective then
  // has no result.
  void for_each_block(control::Rank rank, std::size_t begin, std::size_t end,
                      const Contribution& contribution, const ExpectedBlock& check) const;

 private:
  class Block;

  // Elements of the buffer.
  struct Elements {
    std::size_t begin;
    std::size_t end;
  };

  unsigned trainers_per_server() const { return plan_.placement().trainers_per_server(); }
  std::uint32_t trainers() const { return plan_.placement().trainers(); }
  Elements server_chunk(control::Rank server) const {
    const std::size_t length = collective_.count / plan_.ranks();
    const std::size_t place =
        collective_.chunk_of_rank == nullptr ? server : collective_.chunk_of_rank[server];
    return {place * length, (place + 1) * length};
  }
  Elements chunk(control::Rank rank) const {
    const std::size_t length = collective_.count / trainers();
    const std::size_t first =
        server_chunk(rank / trainers_per_server()).begin + rank % trainers_per_server() * length;
    return {first, first + length};
  }
  // Whether the threads divide each chunk instead of the whole buffer.
  bool is_chunk_by_chunk() const {
    return collective_.kind == control::CollectiveKind::reduce_scatter && !plan_.has_root_step();
  }
  Elements defined(control::Rank rank) const;
  static Elements common(Elements one, Elements other);
  template <typename Visit>
  static void cut(Elements elements, std::size_t most, const Visit& visit);
  void reduced_blocks(control::Rank rank, Elements elements, const Contribution& contribution,
                      const ExpectedBlock& check) const;
  void reproduced_blocks(Elements elements, const Contribution& contribution,
                         const ExpectedBlock& check) const;
  template <typename Visit>
  void for_each_piece(unsigned thread, std::uint64_t bytes, Visit&& visit) const;
  void copied_blocks(control::Rank from, Elements elements, const Contribution& contribution,
                     const ExpectedBlock& check) const;

  const control::Plan& plan_;
  OracleCollective collective_;
  std::size_t element_bytes_;
};

// How many of `length` elements differ in their bits. A NaN equals every other NaN, because the NaN
// that an addition returns is not specified.
std::size_t count_wrong(aggregation::DataType type, const void* expected, const void* found,
                        std::size_t length);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_ORACLE_H_
