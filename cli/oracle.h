// What an all-reduce must yield, to the last bit: every server's contribution, added in the plan's
// order.
//
// The reference is written anew from the paper's words, and shares with the data path only the
// plan's byte ranges and level orders and the scalar kernels (whose one reduce is the definition of
// an addition, aggregation/kernels.h):
//
//   Thread t's part of the gradient is reduced in steps. Aggregation step 0 reduces, for each setting
//   of the other digits, the n contributions of the servers that differ in the digit at level(t,
//   0), in the order of that digit; step 1 reduces those n-fold sums along level(t, 1); and so on
//   until one value is left. Each reduce rounds to the element type once (16-bit floats) or at each
//   addition (the others). The average divides that one value by the number of servers.
//
// Elements are computed in blocks, so the oracle's memory is some megabytes whatever the gradient's
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

// Writes the elements [first, first + length) of a server's contribution to `out`.
using Contribution =
    std::function<void(std::uint32_t server, std::size_t first, std::size_t length, void* out)>;

class Oracle {
 public:
  // Blocks of this many elements at most: with every step's n sources they stay in the cache.
  static constexpr std::size_t kBlockElements = 8192;

  // For gradients of `count` elements. The plan must outlive the oracle.
  Oracle(const control::Plan& plan, aggregation::DataType type, aggregation::Operation operation,
         std::size_t count);

  // Calls check(first, length, expected) for consecutive blocks that together are the elements
  // [begin, end). `expected` is valid during the call only.
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

// How many of `length` elements differ in their bits. Of floats, a NaN equals every NaN: which one
// an addition yields is not specified.
std::size_t count_wrong(aggregation::DataType type, const void* expected, const void* found,
                        std::size_t length);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_ORACLE_H_
