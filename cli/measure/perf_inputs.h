// What the trainers of `gradcube perf` put into their gradients: pseudo-random values that can be
// computed again from (seed, server, index), so that the oracle needs no copy of them.
//
// Floats have random mantissas and magnitudes over several powers of two, so another order of
// addition or one more rounding changes the bits. They are finite, and sums over 1000 servers stay
// finite in every type. Integers take their whole range: sums wrap.
//
// For averages two things differ. 16-bit floats reach the greatest finite number, so their sum over
// three servers already overflows. Integers have 16 bits less, so the sum over up to 65536 servers
// fits.
#ifndef GRADCUBE_CLI_MEASURE_PERF_INPUTS_H_
#define GRADCUBE_CLI_MEASURE_PERF_INPUTS_H_

#include <cstddef>
#include <cstdint>

#include "aggregation/element.h"

namespace gradcube::cli {

// SplitMix64's finalizer: every bit of the argument reaches every bit of the result.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Every iteration, and each of its collectives or messages, has inputs of its own: a result left
// over from the one before is wrong.
inline std::uint64_t seed_of(unsigned iteration, unsigned which) {
  return std::uint64_t{iteration} << 16 | which;
}

// Writes the elements [first, first + length) of this server's gradient. Pure; any thread.
void fill_input(aggregation::DataType type, aggregation::Operation operation, std::uint64_t seed,
                std::uint32_t server, std::size_t first, std::size_t length, void* out);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_PERF_INPUTS_H_
