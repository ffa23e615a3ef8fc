// The loops of all kernels, written once over a description of one instruction set's vectors. For
// the files kernels_<instruction set>.cc alone; kernels.h says what the loops compute.
//
// Such a file describes each element type by a `Lanes` structure:
//
//     Vector                    the accumulators of kLanes elements (float32 for 16-bit floats)
//     Divisor                   a divisor as divide() wants it
//     kLanes, kElementBytes     elements per vector, bytes per element in memory
//     load(from) -> Vector      kLanes elements from any address
//     store(to, Vector)         rounded to the element type, to any address
//     sum, min, max(acc, x)     one step of the reference order
//     divisor(uint32) -> Divisor, divide(Vector, Divisor) -> Vector
//
// The unnamed namespace in this header is on purpose. Each including file is compiled for another
// instruction set; a function with external linkage would be merged by the linker into one body, by
// chance one with instructions that this CPU lacks. For the same reason neither this header nor
// those files use inline functions from elsewhere, the standard library's included. A test looks
// into the object files for it.
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

struct SumStep {
  template <typename Lanes>
  static typename Lanes::Vector apply(typename Lanes::Vector acc, typename Lanes::Vector x) {
    return Lanes::sum(acc, x);
  }
};

struct MinStep {
  template <typename Lanes>
  static typename Lanes::Vector apply(typename Lanes::Vector acc, typename Lanes::Vector x) {
    return Lanes::min(acc, x);
  }
};

struct MaxStep {
  template <typename Lanes>
  static typename Lanes::Vector apply(typename Lanes::Vector acc, typename Lanes::Vector x) {
    return Lanes::max(acc, x);
  }
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

// Reduces kVectors vectors at `offset`. All loads precede the stores, so the result may be a source.
template <typename Lanes, typename Step, std::size_t kVectors, typename Sources>
void reduce_block(std::byte* result, const Sources& sources, std::size_t offset) {
  constexpr std::size_t kVectorBytes = Lanes::kLanes * Lanes::kElementBytes;
  typename Lanes::Vector acc[kVectors];
  const std::byte* first = sources.at(0) + offset;
  for (std::size_t v = 0; v < kVectors; ++v) acc[v] = Lanes::load(first + v * kVectorBytes);
  for (std::size_t s = 1; s < sources.count(); ++s) {
    const std::byte* source = sources.at(s) + offset;
    for (std::size_t v = 0; v < kVectors; ++v) {
      acc[v] = Step::template apply<Lanes>(acc[v], Lanes::load(source + v * kVectorBytes));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    Lanes::store(result + offset + v * kVectorBytes, acc[v]);
  }
}

// Reduces the last `bytes`, less than a vector, through a buffer: no access outside the arrays.
template <typename Lanes, typename Step, typename Sources>
void reduce_tail(std::byte* result, const Sources& sources, std::size_t offset, std::size_t bytes) {
  alignas(64) std::byte part[Lanes::kLanes * Lanes::kElementBytes] = {};
  std::memcpy(part, sources.at(0) + offset, bytes);
  typename Lanes::Vector acc = Lanes::load(part);
  for (std::size_t s = 1; s < sources.count(); ++s) {
    std::memcpy(part, sources.at(s) + offset, bytes);
    acc = Step::template apply<Lanes>(acc, Lanes::load(part));
  }
  Lanes::store(part, acc);
  std::memcpy(result + offset, part, bytes);
}

template <typename Lanes, typename Step, typename Sources>
void reduce_sources(std::byte* result, const Sources& sources, std::size_t count) {
  constexpr std::size_t kVectorBytes = Lanes::kLanes * Lanes::kElementBytes;
  constexpr std::size_t kBlockBytes = kVectorBytes * kVectorsInFlight;
  const std::size_t bytes = count * Lanes::kElementBytes;
  const std::size_t block_bytes = bytes - bytes % kBlockBytes;
  const std::size_t vector_bytes = bytes - bytes % kVectorBytes;
  std::size_t offset = 0;
  for (; offset < block_bytes; offset += kBlockBytes) {
    reduce_block<Lanes, Step, kVectorsInFlight>(result, sources, offset);
  }
  for (; offset < vector_bytes; offset += kVectorBytes) {
    reduce_block<Lanes, Step, 1>(result, sources, offset);
  }
  if (offset < bytes) reduce_tail<Lanes, Step>(result, sources, offset, bytes - offset);
}

// Two sources are what a step of a BCube with n = 2 has to reduce, three one with n = 3.
template <typename Lanes, typename Step>
void reduce(void* result, const void* const* sources, std::size_t source_count,
            std::size_t count) noexcept {
  auto* const to = static_cast<std::byte*>(result);
  if (source_count == 2) {
    reduce_sources<Lanes, Step>(to, FixedSources<2>(sources), count);
  } else if (source_count == 3) {
    reduce_sources<Lanes, Step>(to, FixedSources<3>(sources), count);
  } else {
    reduce_sources<Lanes, Step>(to, AnySources{sources, source_count}, count);
  }
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

template <typename Lanes>
constexpr void fill_row(Kernels& kernels, DataType type) {
  ReduceFunction(&row)[kOperations] = kernels.reduce_functions[static_cast<std::size_t>(type)];
  row[static_cast<std::size_t>(Operation::sum)] = reduce<Lanes, SumStep>;
  row[static_cast<std::size_t>(Operation::average)] = reduce<Lanes, SumStep>;
  row[static_cast<std::size_t>(Operation::min)] = reduce<Lanes, MinStep>;
  row[static_cast<std::size_t>(Operation::max)] = reduce<Lanes, MaxStep>;
  kernels.divide_functions[static_cast<std::size_t>(type)] = divide<Lanes>;
}

template <typename Float32, typename Float64, typename Float16, typename Bfloat16, typename Int32,
          typename Int64>
constexpr Kernels make_kernels(InstructionSet instruction_set) {
  Kernels kernels = {};
  kernels.instruction_set = instruction_set;
  fill_row<Float32>(kernels, DataType::float32);
  fill_row<Float64>(kernels, DataType::float64);
  fill_row<Float16>(kernels, DataType::float16);
  fill_row<Bfloat16>(kernels, DataType::bfloat16);
  fill_row<Int32>(kernels, DataType::int32);
  fill_row<Int64>(kernels, DataType::int64);
  return kernels;
}

}  // namespace
}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_REDUCE_LOOP_H_
