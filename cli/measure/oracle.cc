#include "cli/measure/oracle.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "aggregation/reproducible.h"

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::InstructionSet;
using aggregation::Operation;
using control::CollectiveKind;
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
  // For blocks of no more than `wanted` elements.
  Block(const Oracle& oracle, const Contribution& contribution, std::size_t wanted)
      : oracle_(oracle), contribution_(contribution) {
    const control::Plan& plan = oracle.plan_;
    unsigned radix = 1;
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      for (unsigned w = 0; w < plan.steps(thread); ++w) {
        radix = std::max(radix, plan.radix(thread, w));
      }
    }
    radix = std::max(radix, oracle.trainers_per_server());
    elements_ = std::min(std::max<std::size_t>(kBlockElements / radix, 1), wanted);
    rooms_.resize(plan.steps() + (oracle.trainers_per_server() > 1 ? 1 : 0));
    for (auto& room : rooms_) room.resize(radix * elements_ * oracle.element_bytes_);
    result_.resize(elements_ * oracle.element_bytes_);
  }

  // That one compute() takes at most.
  std::size_t elements() const { return elements_; }

  // Of elements that end at `owner`.
  const void* compute(unsigned thread, Rank owner, std::size_t first, std::size_t length) {
    thread_ = thread;
    first_ = first;
    length_ = length;
    partial_result(oracle_.plan_.steps(thread), owner, result_.data());
    const aggregation::DivideFunction divide = scalar_kernels().divide(oracle_.collective_.type);
    if (oracle_.collective_.operation == Operation::average && divide != nullptr) {
      divide(result_.data(), length, oracle_.trainers());
    }
    return result_.data();
  }

 private:
  // The partial result of the first `steps` steps over all ranks that agree with `rank` in the
  // digits of the later ones.
  void partial_result(unsigned steps, Rank rank, void* out) {
    if (steps == 0) return server_contribution(rank, out);
    const control::Plan& plan = oracle_.plan_;
    const unsigned radix = plan.radix(thread_, steps - 1);
    std::vector<const void*> sources(radix);
    for (unsigned digit = 0; digit < radix; ++digit) {
      std::byte* source = rooms_[steps - 1].data() + digit * elements_ * oracle_.element_bytes_;
      partial_result(steps - 1, plan.peer(rank, thread_, steps - 1, digit), source);
      sources[digit] = source;
    }
    if (plan.step(thread_, steps - 1).is_ring()) {
      reduce_along_ring(sources, plan.digit(rank, thread_, steps - 1), out);
    } else {
      reduce(out, sources);
    }
  }

  void server_contribution(Rank server, void* out) {
    const unsigned trainers = oracle_.trainers_per_server();
    if (trainers == 1) return contribution_(server, first_, length_, out);
    std::vector<const void*> sources(trainers);
    for (unsigned local = 0; local < trainers; ++local) {
      std::byte* source = rooms_.back().data() + local * elements_ * oracle_.element_bytes_;
      contribution_(server * trainers + local, first_, length_, source);
      sources[local] = source;
    }
    reduce(out, sources);
  }

  // sources[digit]; what is reduced ends at the digit `end`.
  void reduce_along_ring(const std::vector<const void*>& sources, unsigned end, void* out) {
    const auto [operation, type] =
        std::pair(oracle_.collective_.operation, oracle_.collective_.type);
    const bool is_mean =
        operation == Operation::average && scalar_kernels().divide(type) == nullptr;
    const auto radix = static_cast<unsigned>(sources.size());
    std::vector<std::byte> travelling(length_ * oracle_.element_bytes_);
    std::memcpy(travelling.data(), sources[(end + 1) % radix], travelling.size());
    for (unsigned hop = 1; hop < radix; ++hop) {
      std::vector<const void*> both(is_mean ? hop : 1, travelling.data());
      both.push_back(sources[(end + 1 + hop) % radix]);
      reduce(out, both);
      std::memcpy(travelling.data(), out, travelling.size());
    }
  }

  void reduce(void* out, const std::vector<const void*>& sources) const {
    const aggregation::ReduceFunction function =
        scalar_kernels().reduce(oracle_.collective_.type, oracle_.collective_.operation);
    if (!function(out, sources.data(), sources.size(), length_)) {
      throw std::overflow_error("the average of integers overflows");
    }
  }

  const Oracle& oracle_;
  const Contribution& contribution_;
  std::size_t elements_ = 0;
  std::vector<std::vector<std::byte>> rooms_;
  std::vector<std::byte> result_;
  unsigned thread_ = 0;
  std::size_t first_ = 0;
  std::size_t length_ = 0;
};

Oracle::Oracle(const control::Plan& plan, const OracleCollective& collective)
    : plan_(plan),
      collective_(collective),
      element_bytes_(aggregation::element_bytes(collective.type)) {
  if (control::is_rank_ordered(collective.kind) && collective.count % trainers() != 0) {
    throw std::invalid_argument("the elements are no equal chunks for each rank");
  }
  if (collective.root >= trainers()) throw std::invalid_argument("the root is no rank");
}

Oracle::Elements Oracle::defined(Rank rank) const {
  switch (collective_.kind) {
    case CollectiveKind::reduce_scatter:
      return chunk(rank);
    case CollectiveKind::reduce:
      return {0, rank == collective_.root ? collective_.count : 0};
    case CollectiveKind::barrier:
      return {0, 0};
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
      break;
  }
  return {0, collective_.count};
}

std::size_t Oracle::most_bytes(const control::Plan& plan) {
  // Beside the steps: what the trainers of a server contribute, what travels in a ring, and the
  // result. Reproducible: the values, and two times carriers, which have up to two words.
  return (plan.steps() + 5) * kBlockElements * sizeof(std::uint64_t);
}

void Oracle::for_each_block(Rank rank, std::size_t begin, std::size_t end,
                            const Contribution& contribution, const ExpectedBlock& check) const {
  const Elements wanted{begin, end};
  const Elements elements = common(defined(rank), wanted);
  if (control::reduces(collective_.kind) && collective_.reproducible) {
    reproduced_blocks(elements, contribution, check);
  } else if (control::reduces(collective_.kind)) {
    reduced_blocks(rank, elements, contribution, check);
  } else if (collective_.kind == CollectiveKind::broadcast) {
    copied_blocks(collective_.root, elements, contribution, check);
  } else {
    for (Rank from = 0; from < trainers(); ++from) {
      copied_blocks(from, common(chunk(from), wanted), contribution, check);
    }
  }
}

Oracle::Elements Oracle::common(Elements one, Elements other) {
  const std::size_t begin = std::max(one.begin, other.begin);
  return {begin, std::max(begin, std::min(one.end, other.end))};
}

// Calls visit(first, length) for blocks of at most so many elements.
template <typename Visit>
void Oracle::cut(Elements elements, std::size_t most, const Visit& visit) {
  for (std::size_t first = elements.begin; first < elements.end; first += most) {
    visit(first, std::min(most, elements.end - first));
  }
}

// In a contiguous buffer of `bytes`; a thread without rings has one piece for all.
template <typename Visit>
void Oracle::for_each_piece(unsigned thread, std::uint64_t bytes, Visit&& visit) const {
  unsigned steps = plan_.steps(thread);
  while (steps > 0 && !plan_.step(thread, steps - 1).is_ring()) --steps;
  std::uint32_t pieces = 1;
  for (unsigned w = 0; w < steps; ++w) pieces *= plan_.step(thread, w).parts();
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    control::UnitRange units = control::part(control::units_of(bytes), plan_.thread_part(thread));
    Rank owner = 0;
    std::uint32_t later = pieces;
    for (unsigned w = 0; w < steps; ++w) {
      const control::PlanStep& step = plan_.step(thread, w);
      later /= step.parts();
      const unsigned digit = piece / later % step.parts();
      units = control::part(units, digit, step.parts());
      owner = step.with_digit(owner, digit);
    }
    visit(owner, control::bytes_of(units, bytes));
  }
}

// Each thread has its share of the part, or, with a root step, of the whole buffer. Where an
// element ends is of no matter to a mesh.
void Oracle::reduced_blocks(Rank rank, Elements elements, const Contribution& contribution,
                            const ExpectedBlock& check) const {
  if (elements.begin == elements.end) return;
  Block block(*this, contribution, elements.end - elements.begin);
  const Rank server = rank / trainers_per_server();
  const Elements whole =
      is_chunk_by_chunk() ? server_chunk(server) : Elements{0, collective_.count};
  const std::uint64_t bytes = (whole.end - whole.begin) * element_bytes_;
  const auto visit = [&](unsigned thread, Rank owner, control::ByteRange range) {
    const Elements of_thread{whole.begin + static_cast<std::size_t>(range.begin) / element_bytes_,
                             whole.begin + static_cast<std::size_t>(range.end) / element_bytes_};
    cut(common(elements, of_thread), block.elements(), [&](std::size_t first, std::size_t length) {
      check(first, length, block.compute(thread, owner, first, length));
    });
  };
  for (unsigned thread = 0; thread < plan_.threads(); ++thread) {
    if (is_chunk_by_chunk()) {
      visit(thread, server, plan_.thread_range(thread, bytes));
      continue;
    }
    for_each_piece(thread, bytes,
                   [&](Rank owner, control::ByteRange range) { visit(thread, owner, range); });
  }
}

void Oracle::reproduced_blocks(Elements elements, const Contribution& contribution,
                               const ExpectedBlock& check) const {
  const aggregation::ReproducibleReduction reduction = {collective_.type, collective_.operation,
                                                        plan_.placement().trainers()};
  const auto [type, operation] = aggregation::carrier_of(reduction).value();
  const aggregation::ReduceFunction add = scalar_kernels().reduce(type, operation);
  const aggregation::DivideFunction divide =
      operation == Operation::average ? scalar_kernels().divide(type) : nullptr;
  std::vector<std::byte> values(kBlockElements * element_bytes_);
  std::vector<std::byte> sum(kBlockElements * aggregation::element_bytes(type));
  std::vector<std::byte> next(sum.size());
  cut(elements, kBlockElements, [&](std::size_t first, std::size_t length) {
    for (Rank rank = 0; rank < plan_.placement().trainers(); ++rank) {
      contribution(rank, first, length, values.data());
      aggregation::to_carriers(reduction, values.data(), (rank == 0 ? sum : next).data(), length);
      const void* both[] = {sum.data(), next.data()};
      if (rank != 0) add(sum.data(), both, 2, length);
    }
    if (divide != nullptr) divide(sum.data(), length, plan_.placement().trainers());
    aggregation::from_carriers(reduction, sum.data(), values.data(), length);
    check(first, length, values.data());
  });
}

void Oracle::copied_blocks(Rank from, Elements elements, const Contribution& contribution,
                           const ExpectedBlock& check) const {
  std::vector<std::byte> values(std::min(kBlockElements, elements.end - elements.begin) *
                                element_bytes_);
  cut(elements, kBlockElements, [&](std::size_t first, std::size_t length) {
    contribution(from, first, length, values.data());
    check(first, length, values.data());
  });
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
    default:  // of all others each bit counts
      break;
  }
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < bytes; at += bytes / length) {
    wrong += std::memcmp(static_cast<const std::byte*>(expected) + at,
                         static_cast<const std::byte*>(found) + at, bytes / length) != 0
                 ? 1
                 : 0;
  }
  return wrong;
}

}  // namespace gradcube::cli
