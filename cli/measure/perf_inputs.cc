#include "cli/measure/perf_inputs.h"

#include <cstring>

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::Operation;

// For an average of integers: room for the sum over 2^16 servers.
constexpr int kSpareBits = 16;

// IEEE 754 bits with a random sign and mantissa, and an exponent in [lowest, lowest +
// 2^exponent_bits).
template <typename Bits, int kMantissaBits, int kBias, int kLowest, int kExponentBits>
constexpr Bits random_float(std::uint64_t random) {
  constexpr int kWidth = sizeof(Bits) * 8;
  const Bits mantissa = static_cast<Bits>(random & ((std::uint64_t{1} << kMantissaBits) - 1));
  const Bits exponent =
      static_cast<Bits>(((random >> 56) & ((1u << kExponentBits) - 1)) + kBias + kLowest);
  const Bits sign = static_cast<Bits>(random >> 63);
  return static_cast<Bits>(sign << (kWidth - 1) | exponent << kMantissaBits | mantissa);
}

template <typename Bits, typename Make>
void fill(std::uint64_t stream, std::size_t first, std::size_t length, void* out, Make make) {
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::size_t i = 0; i < length; ++i) {
    const Bits value = make(mixed(stream + (first + i) * 0x9e3779b97f4a7c15u));
    std::memcpy(bytes + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

void fill_input(DataType type, Operation operation, std::uint64_t seed, std::uint32_t server,
                std::size_t first, std::size_t length, void* out) {
  const std::uint64_t stream = mixed(mixed(seed + 1) + server);
  const bool average = operation == Operation::average;
  switch (type) {
    case DataType::float32:
      return fill<std::uint32_t>(stream, first, length, out,
                                 random_float<std::uint32_t, 23, 127, -8, 4>);
    case DataType::float64:
      return fill<std::uint64_t>(stream, first, length, out,
                                 random_float<std::uint64_t, 52, 1023, -8, 4>);
    case DataType::float16:
      return fill<std::uint16_t>(stream, first, length, out,
                                 average ? random_float<std::uint16_t, 10, 15, 8, 3>
                                         : random_float<std::uint16_t, 10, 15, -4, 3>);
    case DataType::bfloat16:
      return fill<std::uint16_t>(stream, first, length, out,
                                 average ? random_float<std::uint16_t, 7, 127, 120, 3>
                                         : random_float<std::uint16_t, 7, 127, -4, 3>);
    case DataType::int32:
      return fill<std::int32_t>(stream, first, length, out, [=](std::uint64_t random) {
        const auto whole = static_cast<std::int32_t>(static_cast<std::uint32_t>(random >> 16));
        return average ? whole >> kSpareBits : whole;
      });
    case DataType::int64:
      return fill<std::int64_t>(stream, first, length, out, [=](std::uint64_t random) {
        const auto whole = static_cast<std::int64_t>(random);
        return average ? whole >> kSpareBits : whole;
      });
    case DataType::int16:
      return fill<std::int16_t>(stream, first, length, out, [](std::uint64_t random) {
        return static_cast<std::int16_t>(static_cast<std::uint16_t>(random >> 16));
      });
    case DataType::int8:
    case DataType::uint8:
    case DataType::bytes:
    case DataType::sum64:   // never an input
    case DataType::sum128:  // the same
      return fill<std::uint8_t>(stream, first, length, out, [](std::uint64_t random) {
        return static_cast<std::uint8_t>(random >> 16);
      });
  }
}

}  // namespace gradcube::cli
