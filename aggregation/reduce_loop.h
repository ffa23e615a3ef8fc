// The loops of all kernels, written once for the vectors of any instruction set. Only the files
// kernels_<instruction set>.cc include this header. kernels.h says what the loops compute.
//
// Such a file describes each element type by a `Lanes` structure:
//
//     Vector                      the accumulators of kLanes elements (float32 for 16-bit floats)
//     kLanes, kElementBytes       elements per vector, bytes per element in memory
//     load(from) -> Vector        kLanes elements from any address
//     store(to, Vector)           rounded to the element type, to any address
//     sum, min, max(acc, x)       one step of the reference order
//
// (a type that can only be added needs no min and max) and, for the averages of the types that have
// one,
//
//     Divisor                     a divisor in the form that divide() takes
//     divisor(value) -> Divisor, divide(Vector, Divisor) -> Vector
//     broadcast(float) -> Vector  the same number in all lanes (16-bit floats)
//     scale(Vector, Vector)       the product (16-bit floats)
//     overflow(acc, x, sum)       lanes that are negative where the sum has overflowed (integers)
//     either(Vector, Vector)      the bitwise or (integers)
//     any_negative(Vector)        whether a lane is negative (integers)
//
// The unnamed namespace in this header is intended. Each including file is compiled for another
// instruction set. The linker would merge functions with external linkage into one body, and that
// body could hold instructions that this CPU does not have. For the same reason neither this header
// nor those files use inline functions from elsewhere, not even from the standard library. A test
// checks the object files for this.
#ifndef GRADCUBE_AGGREGATION_REDUCE_LOOP_H_
#define GRADCUBE_AGGREGATION_REDUCE_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "aggregation/kernels.h"

namespace gradcube::aggregation {
namespace {

// Enough independent additions to hide their latency, and few enough accumulators for AVX2's
// sixteen registers.
constexpr std::size_t kVectorsInFlight = 4;

// What a reduce does with each source, for one operation. Each call of a kernel constructs one from
// the number of its sources.
//
//     begin(x)        the accumulator after the first source
//     next(acc, x)    the accumulator after each further source
//     end(acc)        the result
//     fits()          false if an addition overflowed that must not

template <typename Lanes>
struct SumStep {
  using Vector = typename Lanes::Vector;

  explicit SumStep(std::size_t) {}
  static Vector begin(Vector x) { return x; }
  static Vector next(Vector acc, Vector x) { return Lanes::sum(acc, x); }
  static Vector end(Vector acc) { return acc; }
  static bool fits() { return true; }
};

template <typename Lanes>
struct MinStep : SumStep<Lanes> {
  using Vector = typename Lanes::Vector;
  using SumStep<Lanes>::SumStep;

  static Vector next(Vector acc, Vector x) { return Lanes::min(acc, x); }
};

template <typename Lanes>
struct MaxStep : SumStep<Lanes> {
  using Vector = typename Lanes::Vector;
  using SumStep<Lanes>::SumStep;

  static Vector next(Vector acc, Vector x) { return Lanes::max(acc, x); }
};

// The mean of m 16-bit floats, in float32. 2^s is the least power of two that is not less than m.
//
// For m <= 256 only the additions and the division round. A float16 is an integer of at most 11
// bits times 2^-24 or more, a bfloat16 an integer of at most 8 bits times 2^-133 or more, and s is
// at most 8. So a source times 2^-s is the same integer times 2^-141 or more. float32 holds
// integers of 24 bits times 2^-149 or more. m * 2^-s has at most 9 bits.
//
// The result lies between the least source a and the greatest source b. For j <= 256, j * a * 2^-s
// and j * b * 2^-s have at most 11 + 8 bits, so float32 holds them. Rounding is monotonic. So, by
// induction, the sum of j scaled sources lies between these two, and the quotient lies between a
// and b. If the sources are finite, nothing overflows, because j * 2^-s <= 1.
template <typename Lanes>
struct MeanStep {
  using Vector = typename Lanes::Vector;

  explicit MeanStep(std::size_t source_count) {
    float power = 1;
    while (power < static_cast<float>(source_count)) power *= 2;
    down = Lanes::broadcast(1 / power);
    divisor = Lanes::broadcast(static_cast<float>(source_count) / power);
  }
  Vector begin(Vector x) const { return Lanes::scale(x, down); }
  Vector next(Vector acc, Vector x) const { return Lanes::sum(acc, Lanes::scale(x, down)); }
  Vector end(Vector acc) const { return Lanes::divide(acc, divisor); }
  static bool fits() { return true; }

  Vector down;
  Vector divisor;
};

// A sum of integers that notices an overflow of any addition.
template <typename Lanes>
struct CheckedSumStep {
  using Vector = typename Lanes::Vector;

  explicit CheckedSumStep(std::size_t) {}
  static Vector begin(Vector x) { return x; }
  Vector next(Vector acc, Vector x) {
    const Vector sum = Lanes::sum(acc, x);
    overflow = Lanes::either(overflow, Lanes::overflow(acc, x, sum));
    return sum;
  }
  static Vector end(Vector acc) { return acc; }
  bool fits() const { return !Lanes::any_negative(overflow); }

  Vector overflow{};
};

// A number of sources known at compile time: their addresses stay in registers.
template <std::size_t kCount>
struct FixedSources {
  const std::byte* addresses[kCount];

  explicit FixedSources(const void* const* sources) {
    for (std::size_t s = 0; s < kCount; ++s)
      addresses[s] = static_cast<const std::byte*>(sources[s]);
  }
  static constexpr std::size_t count() { return kCount; }
  const std::byte* at(std::size_t s) const { return addresses[s]; }
};

struct AnySources {
  const void* const* addresses;
  std::size_t source_count;

  std::size_t count() const { return source_count; }
  const std::byte* at(std::size_t s) const { return static_cast<const std::byte*>(addresses[s]); }
};

// Reduces kVectors vectors at `offset`. All loads precede the stores, so the result may be a
// source.
template <typename Lanes, std::size_t kVectors, typename Step, typename Sources>
void reduce_block(std::byte* result, const Sources& sources, std::size_t offset, Step& step) {
  constexpr std::size_t kVectorBytes = Lanes::kLanes * Lanes::kElementBytes;
  typename Lanes::Vector acc[kVectors];
  const std::byte* first = sources.at(0) + offset;
  for (std::size_t v = 0; v < kVectors; ++v) {
    acc[v] = step.begin(Lanes::load(first + v * kVectorBytes));
  }
  for (std::size_t s = 1; s < sources.count(); ++s) {
    const std::byte* source = sources.at(s) + offset;
    for (std::size_t v = 0; v < kVectors; ++v) {
      acc[v] = step.next(acc[v], Lanes::load(source + v * kVectorBytes));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    Lanes::store(result + offset + v * kVectorBytes, step.end(acc[v]));
  }
}

// Reduces the last `bytes`, less than a vector, through a buffer: no access outside the arrays. The
// lanes beyond them stay 0.
template <typename Lanes, typename Step, typename Sources>
void reduce_tail(std::byte* result, const Sources& sources, std::size_t offset, std::size_t bytes,
                 Step& step) {
  alignas(64) std::byte part[Lanes::kLanes * Lanes::kElementBytes] = {};
  std::memcpy(part, sources.at(0) + offset, bytes);
  typename Lanes::Vector acc = step.begin(Lanes::load(part));
  for (std::size_t s = 1; s < sources.count(); ++s) {
    std::memcpy(part, sources.at(s) + offset, bytes);
    acc = step.next(acc, Lanes::load(part));
  }
  Lanes::store(part, step.end(acc));
  std::memcpy(result + offset, part, bytes);
}

template <typename Lanes, template <typename> class StepOf, typename Sources>
bool reduce_sources(std::byte* result, const Sources& sources, std::size_t count) {
  constexpr std::size_t kVectorBytes = Lanes::kLanes * Lanes::kElementBytes;
  constexpr std::size_t kBlockBytes = kVectorBytes * kVectorsInFlight;
  const std::size_t bytes = count * Lanes::kElementBytes;
  const std::size_t block_bytes = bytes - bytes % kBlockBytes;
  const std::size_t vector_bytes = bytes - bytes % kVectorBytes;
  StepOf<Lanes> step(sources.count());
  std::size_t offset = 0;
  for (; offset < block_bytes; offset += kBlockBytes) {
    reduce_block<Lanes, kVectorsInFlight>(result, sources, offset, step);
  }
  for (; offset < vector_bytes; offset += kVectorBytes) {
    reduce_block<Lanes, 1>(result, sources, offset, step);
  }
  if (offset < bytes) reduce_tail<Lanes>(result, sources, offset, bytes - offset, step);
  return step.fits();
}

// A step of a BCube with n = 2 has two sources to reduce, one with n = 3 has three.
template <typename Lanes, template <typename> class StepOf>
bool reduce(void* result, const void* const* sources, std::size_t source_count,
            std::size_t count) noexcept {
  auto* const to = static_cast<std::byte*>(result);
  if (source_count == 2) {
    return reduce_sources<Lanes, StepOf>(to, FixedSources<2>(sources), count);
  }
  if (source_count == 3) {
    return reduce_sources<Lanes, StepOf>(to, FixedSources<3>(sources), count);
  }
  return reduce_sources<Lanes, StepOf>(to, AnySources{sources, source_count}, count);
}

template <typename Lanes>
void divide(void* values, std::size_t count, std::uint32_t divisor) noexcept {
  constexpr std::size_t kVectorBytes = Lanes::kLanes * Lanes::kElementBytes;
  auto* const from = static_cast<std::byte*>(values);
  const std::size_t bytes = count * Lanes::kElementBytes;
  const std::size_t vector_bytes = bytes - bytes % kVectorBytes;
  const typename Lanes::Divisor by = Lanes::divisor(divisor);
  std::size_t offset = 0;
  for (; offset < vector_bytes; offset += kVectorBytes) {
    Lanes::store(from + offset, Lanes::divide(Lanes::load(from + offset), by));
  }
  if (offset < bytes) {
    alignas(64) std::byte part[kVectorBytes] = {};
    std::memcpy(part, from + offset, bytes - offset);
    Lanes::store(part, Lanes::divide(Lanes::load(part), by));
    std::memcpy(from + offset, part, bytes - offset);
  }
}

// Of a type without an average.
template <typename Lanes>
constexpr void fill_row(Kernels& kernels, DataType type) {
  ReduceFunction(&row)[kOperations] = kernels.reduce_functions[static_cast<std::size_t>(type)];
  row[static_cast<std::size_t>(Operation::sum)] = reduce<Lanes, SumStep>;
  row[static_cast<std::size_t>(Operation::min)] = reduce<Lanes, MinStep>;
  row[static_cast<std::size_t>(Operation::max)] = reduce<Lanes, MaxStep>;
}

template <typename Lanes, template <typename> class AverageStep>
constexpr void fill_row(Kernels& kernels, DataType type, DivideFunction divide_function) {
  fill_row<Lanes>(kernels, type);
  const auto index = static_cast<std::size_t>(type);
  kernels.reduce_functions[index][static_cast<std::size_t>(Operation::average)] =
      reduce<Lanes, AverageStep>;
  kernels.divide_functions[index] = divide_function;
}

// Of a type that can only be added.
template <typename Lanes>
constexpr void fill_sum(Kernels& kernels, DataType type) {
  kernels
      .reduce_functions[static_cast<std::size_t>(type)][static_cast<std::size_t>(Operation::sum)] =
      reduce<Lanes, SumStep>;
}

// What no row fills stays null.
template <typename Float32, typename Float64, typename Float16, typename Bfloat16, typename Int32,
          typename Int64, typename Int16, typename Int8, typename Uint8, typename Sum64,
          typename Sum128>
constexpr Kernels make_kernels(InstructionSet instruction_set, const Optimizers& optimizers) {
  Kernels kernels = {};
  kernels.instruction_set = instruction_set;
  kernels.optimizers = optimizers;
  fill_row<Float32, SumStep>(kernels, DataType::float32, divide<Float32>);
  fill_row<Float64, SumStep>(kernels, DataType::float64, divide<Float64>);
  fill_row<Float16, MeanStep>(kernels, DataType::float16, nullptr);
  fill_row<Bfloat16, MeanStep>(kernels, DataType::bfloat16, nullptr);
  fill_row<Int32, CheckedSumStep>(kernels, DataType::int32, divide<Int32>);
  fill_row<Int64, CheckedSumStep>(kernels, DataType::int64, divide<Int64>);
  fill_row<Int16>(kernels, DataType::int16);
  fill_row<Int8>(kernels, DataType::int8);
  fill_row<Uint8>(kernels, DataType::uint8);
  fill_sum<Sum64>(kernels, DataType::sum64);
  fill_sum<Sum128>(kernels, DataType::sum128);
  return kernels;
}

}  // namespace
}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_REDUCE_LOOP_H_
