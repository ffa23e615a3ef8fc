#include "tests/simulation/inputs.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "cli/oracle.h"
#include "dataplane/fabric/emulated/random.h"

namespace gradcube::simulation {

namespace {

using aggregation::DataType;
using aggregation::Operation;

// Of either sign, over twenty binary orders of magnitude, with a full mantissa: sums that depend on
// the order of addition.
double spread(std::uint64_t bits) {
  const double mantissa = static_cast<double>(static_cast<std::int32_t>(bits)) * 0x1p-31;
  return std::ldexp(mantissa, static_cast<int>(bits >> 32 & 0xf) - 8);
}

template <typename Element>
void put(void* out, std::size_t index, Element element) {
  std::memcpy(static_cast<std::uint8_t*>(out) + index * sizeof element, &element, sizeof element);
}

void put_element(DataType dtype, Operation operation, std::uint64_t bits, void* out,
                 std::size_t index) {
  const bool average = operation == Operation::average;
  switch (dtype) {
    case DataType::float32:
      return put(out, index, static_cast<float>(spread(bits)));
    case DataType::float64:
      return put(out, index, spread(bits) + static_cast<double>(bits >> 40) * 0x1p-50);
    case DataType::float16:
      return put(out, index,
                 aggregation::float32_to_float16(
                     static_cast<float>(spread(bits) * (average ? 0x1p8 : 1))));
    case DataType::bfloat16:
      return put(out, index,
                 aggregation::float32_to_bfloat16(
                     static_cast<float>(spread(bits) * (average ? 0x1p120 : 1))));
    case DataType::int32:
      return put(out, index, static_cast<std::int32_t>(bits) >> (average ? 16 : 0));
    case DataType::int64:
      return put(out, index, static_cast<std::int64_t>(bits) >> (average ? 16 : 0));
    case DataType::int8:
    case DataType::uint8:
    case DataType::bytes:
      return put(out, index, static_cast<std::uint8_t>(bits));
  }
}

// All elements are 1 but the last, of which the sum of two does not fit.
void put_overflow(const Collective& collective, std::size_t first, std::size_t length, void* out) {
  const bool narrow = collective.dtype == DataType::int32;
  for (std::size_t i = 0; i < length; ++i) {
    const bool last = first + i == collective.count - 1;
    if (narrow) {
      put(out, i, last ? std::numeric_limits<std::int32_t>::max() : 1);
    } else {
      put(out, i, last ? std::numeric_limits<std::int64_t>::min() : std::int64_t{1});
    }
  }
}

}  // namespace

void write_input(const Collective& collective, std::uint32_t server, std::size_t first,
                 std::size_t length, void* out) {
  if (collective.overflows) return put_overflow(collective, first, length, out);
  const std::uint64_t stream = (collective.salt << 32 | server) * 0x9e3779b97f4a7c15;
  for (std::size_t i = 0; i < length; ++i) {
    put_element(collective.dtype, collective.operation,
                dataplane::SeededRandom(stream + first + i).next(), out, i);
  }
}

std::uint64_t fill_and_submit(SimulatedTrainer& trainer, const Collective& collective) {
  write_input(collective, trainer.rank(), 0, collective.count, trainer.at(collective.offset));
  return trainer.submit(collective.offset, collective.count, collective.dtype,
                        collective.operation);
}

std::vector<std::uint8_t> expected_result(const control::Plan& plan, const Collective& collective) {
  std::vector<std::uint8_t> expected(collective.bytes());
  const std::size_t size = aggregation::element_bytes(collective.dtype);
  const cli::Oracle oracle(plan, collective.dtype, collective.operation, collective.count);
  oracle.for_each_block(
      0, collective.count,
      [&](std::uint32_t server, std::size_t first, std::size_t length, void* out) {
        write_input(collective, server, first, length, out);
      },
      [&](std::size_t first, std::size_t length, const void* block) {
        std::memcpy(expected.data() + first * size, block, length * size);
      });
  return expected;
}

std::size_t wrong_elements(SimulatedTrainer& trainer, const Collective& collective,
                           const std::vector<std::uint8_t>& expected) {
  return cli::count_wrong(collective.dtype, expected.data(), trainer.at(collective.offset),
                          collective.count);
}

}  // namespace gradcube::simulation
