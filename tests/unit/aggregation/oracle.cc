#include "tests/unit/aggregation/oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace gradcube::aggregation::test {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return {8, 23};
    case DataType::float64:
      return {11, 52};
    case DataType::float16:
      return {5, 10};
    default:
      return {8, 7};
  }
}

Bits width_mask(DataType type) {
  return ~Bits{0} >> (64 - 8 * static_cast<int>(element_bytes(type)));
}
Bits sign_bit(DataType type) { return width_mask(type) ^ (width_mask(type) >> 1); }
Bits mantissa_mask(DataType type) { return (Bits{1} << format_of(type).mantissa_bits) - 1; }
Bits infinity(DataType type) { return (sign_bit(type) - 1) & ~mantissa_mask(type); }
Bits quiet_bit(DataType type) { return Bits{1} << (format_of(type).mantissa_bits - 1); }

// All finite values from 0 up; a value's place is its bit pattern.
std::vector<double> finite_values(DataType type) {
  std::vector<double> values;
  for (Bits bits = 0; bits < infinity(type); ++bits) {
    values.push_back(decode_small_float(type, static_cast<std::uint16_t>(bits)));
  }
  return values;
}

double to_double(DataType type, Bits element) {
  if (type == DataType::float64) return std::bit_cast<double>(element);
  if (type == DataType::float32) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(element));
  }
  return decode_small_float(type, static_cast<std::uint16_t>(element));
}

std::int64_t to_integer(DataType type, Bits element) {
  if (type == DataType::int64) return static_cast<std::int64_t>(element);
  if (type == DataType::uint8 || (element & sign_bit(type)) == 0) {
    return static_cast<std::int64_t>(element & width_mask(type));
  }
  return static_cast<std::int64_t>(element | ~width_mask(type));
}

// `value` has been rounded to float32 before, where the type is that or smaller.
Bits from_double(DataType type, double value) {
  if (type == DataType::float64) return std::bit_cast<Bits>(value);
  if (type == DataType::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return encode_small_float(type, value);
}

bool replaces(DataType type, Operation operation, Bits acc, Bits x) {
  if (!is_float(type)) {
    return operation == Operation::min ? to_integer(type, x) < to_integer(type, acc)
                                       : to_integer(type, x) > to_integer(type, acc);
  }
  if (is_nan(type, acc)) return false;
  if (is_nan(type, x)) return true;
  return operation == Operation::min ? to_double(type, x) < to_double(type, acc)
                                     : to_double(type, x) > to_double(type, acc);
}

}  // namespace

bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::float64 || type == DataType::float16 ||
         type == DataType::bfloat16;
}

bool is_finite(DataType type, Bits element) { return (element & infinity(type)) != infinity(type); }

bool is_nan(DataType type, Bits element) {
  return is_float(type) && (element & (sign_bit(type) - 1)) > infinity(type);
}

bool is_quiet_nan(DataType type, Bits element) {
  return is_nan(type, element) && (element & quiet_bit(type)) != 0;
}

double decode_small_float(DataType type, std::uint16_t element) {
  const int bias = (1 << (format_of(type).exponent_bits - 1)) - 1;
  const auto exponent =
      static_cast<int>((element & infinity(type)) >> format_of(type).mantissa_bits);
  const auto mantissa = static_cast<double>(element & mantissa_mask(type));
  const double sign = (element & sign_bit(type)) != 0 ? -1.0 : 1.0;
  if (is_nan(type, element)) return std::numeric_limits<double>::quiet_NaN();
  if (!is_finite(type, element)) {
    return sign * std::numeric_limits<double>::infinity();
  }
  const double one = exponent == 0 ? 0.0 : std::ldexp(1.0, format_of(type).mantissa_bits);
  return sign *
         std::ldexp(one + mantissa, std::max(exponent, 1) - bias - format_of(type).mantissa_bits);
}

std::uint16_t encode_small_float(DataType type, double value) {
  static const std::vector<double> kHalves = finite_values(DataType::float16);
  static const std::vector<double> kBfloats = finite_values(DataType::bfloat16);
  const std::vector<double>& values = type == DataType::float16 ? kHalves : kBfloats;
  const Bits sign = std::signbit(value) ? sign_bit(type) : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | infinity(type) | quiet_bit(type));
  }
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  auto bits = static_cast<Bits>(above - values.begin());
  if (above == values.end() || *above != magnitude) {
    const double below_value = values[bits - 1];
    const double above_value =
        above == values.end() ? below_value + (below_value - values[bits - 2]) : *above;
    const double middle = below_value + (above_value - below_value) / 2;
    if (magnitude < middle || (magnitude == middle && (bits & 1) != 0)) --bits;
  }
  return static_cast<std::uint16_t>(sign | bits);
}

namespace {

// The mean of 16-bit floats with scaled additions in float32, each computed in float64.
Bits small_float_mean(DataType type, std::span<const Bits> elements) {
  int halvings = 0;
  while ((std::size_t{1} << halvings) < elements.size()) ++halvings;
  double sum = std::ldexp(to_double(type, elements[0]), -halvings);
  for (const Bits x : elements.subspan(1)) {
    sum = static_cast<float>(sum + std::ldexp(to_double(type, x), -halvings));
  }
  const double divisor = std::ldexp(static_cast<double>(elements.size()), -halvings);
  return from_double(type, static_cast<float>(sum / divisor));
}

}  // namespace

bool oracle_overflows(DataType type, std::span<const Bits> elements) {
  const __int128 limit = static_cast<__int128>(1) << (8 * element_bytes(type) - 1);
  __int128 sum = 0;
  for (const Bits x : elements) {
    sum += to_integer(type, x);
    if (sum < -limit || sum >= limit) return true;
  }
  return false;
}

Bits oracle_reduce(DataType type, Operation operation, std::span<const Bits> elements) {
  if (operation == Operation::average && element_bytes(type) == 2) {
    return small_float_mean(type, elements);
  }
  Bits acc = elements[0];
  if (operation == Operation::min || operation == Operation::max) {
    for (const Bits x : elements.subspan(1)) acc = replaces(type, operation, acc, x) ? x : acc;
    return acc;
  }
  if (!is_float(type)) {
    for (const Bits x : elements.subspan(1)) acc = (acc + x) & width_mask(type);
    return acc;
  }
  if (elements.size() == 1) return acc;
  double sum = to_double(type, elements[0]);
  for (const Bits x : elements.subspan(1)) {
    sum += to_double(type, x);
    if (type != DataType::float64) sum = static_cast<float>(sum);
  }
  return from_double(type, sum);
}

Bits oracle_divide(DataType type, Bits element, std::uint32_t divisor) {
  if (!is_float(type)) {
    const __int128 quotient = static_cast<__int128>(to_integer(type, element)) / divisor;
    return static_cast<Bits>(quotient) & width_mask(type);
  }
  if (type == DataType::float64) return from_double(type, to_double(type, element) / divisor);
  // The quotient of two float32 in float64, rounded again, is their rounded quotient.
  const double by = static_cast<float>(divisor);
  return from_double(type, static_cast<float>(to_double(type, element) / by));
}

bool agrees(DataType type, Operation operation, Bits expected, Bits actual) {
  if (is_nan(type, expected)) {
    if (element_bytes(type) == 2) return is_quiet_nan(type, actual);
    if (operation == Operation::sum || operation == Operation::average) return is_nan(type, actual);
  }
  return expected == actual;
}

std::vector<Bits> special_elements(DataType type) {
  const Bits sign = sign_bit(type);
  if (!is_float(type)) {
    return {0,        1,        2, width_mask(type),    width_mask(type) - 1, sign, sign + 1,
            sign - 1, sign - 2, 7, width_mask(type) - 6};
  }
  const Format format = format_of(type);
  const Bits one = ((Bits{1} << (format.exponent_bits - 1)) - 1) << format.mantissa_bits;
  const Bits exponent_step = Bits{1} << format.mantissa_bits;
  const Bits half_place = one - (format.mantissa_bits + 1) * exponent_step;
  std::vector<Bits> elements = {
      0,                    // zero
      1,                    // the least denormal
      mantissa_mask(type),  // the greatest
      exponent_step,        // the least normal number
      infinity(type) - 1,   // the greatest finite number
      infinity(type),       //
      infinity(type) | 1,   // a signalling NaN
      infinity(type) | 1 | quiet_bit(type),
      one,  // 1 and its successor, and half of the distance between them
      one + 1,
      half_place,
      half_place + 1,
      infinity(type) - exponent_step * (format.mantissa_bits + 2),  // half a place of the greatest
  };
  const std::size_t positive = elements.size();
  for (std::size_t i = 0; i < positive; ++i) elements.push_back(elements[i] | sign);
  return elements;
}

Bits random_element(DataType type, std::mt19937_64& random) {
  const Bits pattern = random() & width_mask(type);
  const std::uint64_t kind = random() % 64;
  if (kind == 0) {
    const std::vector<Bits> elements = special_elements(type);
    return elements[random() % elements.size()];
  }
  if (kind < 4 || !is_float(type)) return pattern;
  // Some exponents below 1: the mantissa and the sign are the pattern's.
  const Format format = format_of(type);
  const Bits one = (Bits{1} << (format.exponent_bits - 1)) - 1;
  const Bits exponent = one - random() % 10;
  return (pattern & (sign_bit(type) | mantissa_mask(type))) | (exponent << format.mantissa_bits);
}

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> available;
  for (const InstructionSet instruction_set : kInstructionSets) {
    if (const Kernels* kernels = kernels_for(instruction_set)) available.push_back(kernels);
  }
  return available;
}

std::uint64_t test_seed() {
  const char* seed = std::getenv("GRADCUBE_TEST_SEED");
  return seed != nullptr ? std::stoull(seed) : 20180913;
}

}  // namespace gradcube::aggregation::test
