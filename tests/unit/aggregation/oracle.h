// What the kernels must return, computed in another way: element by element, with elements as bit
// patterns. Small floats are decoded by ldexp() and rounded by a search in the table of all their
// values. float32 additions are done in float64, whose second rounding does not matter. The rules
// are those in aggregation/kernels.h.
#ifndef GRADCUBE_TESTS_UNIT_AGGREGATION_ORACLE_H_
#define GRADCUBE_TESTS_UNIT_AGGREGATION_ORACLE_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "aggregation/element.h"
#include "aggregation/kernels.h"

namespace gradcube::aggregation::test {

// An element as its bits, in the low element_bytes() bytes.
using Bits = std::uint64_t;

// ((elements[0] op elements[1]) op elements[2])...; for an average of 16-bit floats their mean.
Bits oracle_reduce(DataType type, Operation operation, std::span<const Bits> elements);
// Of integers: whether a partial sum does not fit in the type.
bool oracle_overflows(DataType type, std::span<const Bits> elements);
Bits oracle_divide(DataType type, Bits element, std::uint32_t divisor);

bool is_float(DataType type);
bool is_finite(DataType type, Bits element);  // a float
bool is_nan(DataType type, Bits element);
bool is_quiet_nan(DataType type, Bits element);

// Whether `actual` is what the rules allow where the oracle says `expected`: the same bits, or any
// NaN (quiet, for 16-bit types) where they leave its payload open.
bool agrees(DataType type, Operation operation, Bits expected, Bits actual);

// The value of a 16-bit float, and the 16-bit float nearest to a value, ties to even.
double decode_small_float(DataType type, std::uint16_t element);
std::uint16_t encode_small_float(DataType type, double value);

// Zeros, infinities, NaNs, denormals, the extremes, and values whose sums lie halfway.
std::vector<Bits> special_elements(DataType type);

// Mostly values of a gradient's size, with arbitrary bit patterns and special elements in between.
Bits random_element(DataType type, std::mt19937_64& random);

inline constexpr Operation kAllOperations[] = {Operation::sum, Operation::average, Operation::min,
                                               Operation::max};

// The kernels of every instruction set that this machine has.
std::vector<const Kernels*> available_kernels();

// $GRADCUBE_TEST_SEED, or a fixed seed.
std::uint64_t test_seed();

}  // namespace gradcube::aggregation::test

#endif  // GRADCUBE_TESTS_UNIT_AGGREGATION_ORACLE_H_
