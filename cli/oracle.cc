#include "cli/oracle.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::InstructionSet;
using aggregation::Operation;
using control::Rank;

const aggregation::Kernels& scalar_kernels() {
  return *aggregation::kernels_for(InstructionSet::scalar);
}

// Whether the bits are those of a NaN: all ones in the exponent, and a mantissa.
template <typename Bits, Bits kExponent>
bool is_nan(Bits bits) {
  constexpr Bits kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  return static_cast<Bits>(bits & kMagnitude) > kExponent;
}

template <typename Bits, typename Nan>
std::size_t count_different(const void* expected, const void* found, std::size_t length, Nan nan) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < length; ++i) {
    Bits a, b;
    std::memcpy(&a, static_cast<const std::byte*>(expected) + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&b, static_cast<const std::byte*>(found) + i * sizeof(Bits), sizeof(Bits));
    wrong += a != b && !(nan(a) && nan(b)) ? 1 : 0;
  }
  return wrong;
}

}  // namespace

// The computation of one block: elements of one thread's part. Holds, for each step, room for the
// sources of its reduce.
class Oracle::Block {
 public:
  Block(const Oracle& oracle, const Contribution& contribution)
      : oracle_(oracle), contribution_(contribution) {
    const control::Plan& plan = oracle.plan_;
    unsigned radix = 1;
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      for (unsigned w = 0; w < plan.steps(thread); ++w) {
        radix = std::max(radix, plan.radix(thread, w));
      }
    }
    rooms_.resize(plan.steps());
    for (auto& room : rooms_) room.resize(radix * kBlockElements * oracle.element_bytes_);
    result_.resize(kBlockElements * oracle.element_bytes_);
  }

  const void* compute(unsigned thread, std::size_t first, std::size_t length) {
    thread_ = thread;
    first_ = first;
    length_ = length;
    partial_result(oracle_.plan_.steps(thread), 0, result_.data());
    const aggregation::DivideFunction divide = scalar_kernels().divide(oracle_.type_);
    if (oracle_.operation_ == Operation::average && divide != nullptr) {
      divide(result_.data(), length, oracle_.plan_.ranks());
    }
    return result_.data();
  }

 private:
  // The partial result of the first `steps` steps over all ranks that agree with `rank` in the
  // digits of the later ones.
  void partial_result(unsigned steps, Rank rank, void* out) {
    if (steps == 0) return contribution_(rank, first_, length_, out);
    const control::Plan& plan = oracle_.plan_;
    const unsigned radix = plan.radix(thread_, steps - 1);
    std::vector<const void*> sources(radix);
    for (unsigned digit = 0; digit < radix; ++digit) {
      std::byte* source =
          rooms_[steps - 1].data() + digit * kBlockElements * oracle_.element_bytes_;
      partial_result(steps - 1, plan.peer(rank, thread_, steps - 1, digit), source);
      sources[digit] = source;
    }
    const aggregation::ReduceFunction reduce =
        scalar_kernels().reduce(oracle_.type_, oracle_.operation_);
    if (!reduce(out, sources.data(), radix, length_)) {
      throw std::overflow_error("the average of integers overflows");
    }
  }

  const Oracle& oracle_;
  const Contribution& contribution_;
  std::vector<std::vector<std::byte>> rooms_;
  std::vector<std::byte> result_;
  unsigned thread_ = 0;
  std::size_t first_ = 0;
  std::size_t length_ = 0;
};

Oracle::Oracle(const control::Plan& plan, DataType type, Operation operation, std::size_t count)
    : plan_(plan),
      type_(type),
      operation_(operation),
      count_(count),
      element_bytes_(aggregation::element_bytes(type)) {}

void Oracle::for_each_block(
    std::size_t begin, std::size_t end, const Contribution& contribution,
    const std::function<void(std::size_t, std::size_t, const void*)>& check) const {
  Block block(*this, contribution);
  for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
    const control::ByteRange range = plan_.thread_range(thread, count_ * element_bytes_);
    std::size_t first = std::max<std::size_t>(begin, range.begin / element_bytes_);
    const std::size_t last = std::min<std::size_t>(end, range.end / element_bytes_);
    while (first < last) {
      const std::size_t length = std::min(kBlockElements, last - first);
      check(first, length, block.compute(thread, first, length));
      first += length;
    }
  }
}

std::size_t count_wrong(DataType type, const void* expected, const void* found,
                        std::size_t length) {
  const std::size_t bytes = length * aggregation::element_bytes(type);
  if (bytes == 0 || std::memcmp(expected, found, bytes) == 0) return 0;
  switch (type) {
    case DataType::float32:
      return count_different<std::uint32_t>(expected, found, length,
                                            is_nan<std::uint32_t, 0x7f800000u>);
    case DataType::float64:
      return count_different<std::uint64_t>(expected, found, length,
                                            is_nan<std::uint64_t, 0x7ff0000000000000u>);
    case DataType::float16:
      return count_different<std::uint16_t>(expected, found, length,
                                            is_nan<std::uint16_t, 0x7c00u>);
    case DataType::bfloat16:
      return count_different<std::uint16_t>(expected, found, length,
                                            is_nan<std::uint16_t, 0x7f80u>);
    case DataType::int32:
      return count_different<std::uint32_t>(expected, found, length,
                                            [](std::uint32_t) { return false; });
    case DataType::int64:
      break;
  }
  return count_different<std::uint64_t>(expected, found, length,
                                        [](std::uint64_t) { return false; });
}

}  // namespace gradcube::cli
