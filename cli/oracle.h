// What an all-reduce must yield, to the last bit: every rank's contribution, combined in the plan's
// order.
//
// The reference is written from the words of the paper. It shares with the data path only the
// plan's byte ranges and orders of steps and the scalar kernels, whose one reduce defines the
// arithmetic (aggregation/kernels.h, docs/arithmetic.md):
//
//   Thread t's part of the gradient is reduced in steps. Aggregation step 0 reduces, for each
//   setting of the other digits, the n contributions of the ranks that differ in the digit of step
//   0, in the order of that digit; step 1 reduces those n partial results along its own digit; and
//   so on until one value is left. Each reduce rounds to the element type once (16-bit
//   floats) or at each addition (the others). An average of 16-bit floats is a mean of means: each
//   reduce returns the mean of its n values. An average of any other type divides the last value by
//   the number of ranks.
//
// Elements are computed in blocks, so the oracle needs only some megabytes for a gradient of any
// size. Const calls may be made by several threads at once.
#ifndef GRADCUBE_CLI_ORACLE_H_
#define GRADCUBE_CLI_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "aggregation/element.h"
#include "aggregation/kernels.h"
#include "control/plan/plan.h"

namespace gradcube::cli {

// Writes the elements [first, first + length) of a rank's contribution to `out`.
using Contribution =
    std::function<void(std::uint32_t rank, std::size_t first, std::size_t length, void* out)>;

class Oracle {
 public:
  // Blocks of this many elements at most: with every step's n sources they stay in the cache.
  static constexpr std::size_t kBlockElements = 8192;

  // For gradients of `count` elements. The plan must outlive the oracle.
  Oracle(const control::Plan& plan, aggregation::DataType type, aggregation::Operation operation,
         std::size_t count);

  // Calls check(first, length, expected) for consecutive blocks that together are the elements
  // [begin, end). `expected` is valid during the call only. Throws std::overflow_error where an
  // average of integers overflows: the collective then has no result.
  void for_each_block(std::size_t begin, std::size_t end, const Contribution& contribution,
                      const std::function<void(std::size_t first, std::size_t length,
                                               const void* expected)>& check) const;

 private:
  class Block;

  const control::Plan& plan_;
  aggregation::DataType type_;
  aggregation::Operation operation_;
  std::size_t count_;
  std::size_t element_bytes_;
};

// How many of `length` elements differ in their bits. A NaN equals every other NaN, because the NaN
// that an addition returns is not specified.
std::size_t count_wrong(aggregation::DataType type, const void* expected, const void* found,
                        std::size_t length);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_ORACLE_H_
