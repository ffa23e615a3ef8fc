#include "tests/simulation/inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cli/measure/oracle.h"
#include "dataplane/fabric/emulated/random.h"

namespace gradcube::simulation {

namespace {

using aggregation::DataType;
using aggregation::Operation;

// Of either sign, over twenty binary orders of magnitude, with a full mantissa: sums that depend on
// the order of addition.
double spread(std::uint64_t bits) {
  const double mantissa = static_cast<double>(static_cast<std::int32_t>(bits)) * 0x1p-31;
  return mantissa * static_cast<double>(1u << (bits >> 32 & 0xf)) * 0x1p-8;  // exact
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
    case DataType::int16:
      return put(out, index, static_cast<std::int16_t>(bits));
    case DataType::int8:
    case DataType::uint8:
    case DataType::bytes:
    case DataType::sum64:   // no trainer names it
    case DataType::sum128:  // the same
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

void write_input(const Collective& collective, std::uint32_t rank, std::size_t first,
                 std::size_t length, void* out) {
  if (collective.overflows) return put_overflow(collective, first, length, out);
  const std::uint64_t stream = (collective.salt << 32 | rank) * 0x9e3779b97f4a7c15;
  for (std::size_t i = 0; i < length; ++i) {
    put_element(collective.dtype, collective.operation,
                dataplane::SeededRandom(stream + first + i).next(), out, i);
  }
}

std::uint64_t fill_and_submit(SimulatedTrainer& trainer, const Collective& collective) {
  std::uint8_t* buffer = trainer.at(collective.offset);
  if (collective.carries()) {
    const std::size_t size = aggregation::element_bytes(collective.dtype);
    std::vector<std::uint8_t> values(collective.count * size);
    write_input(collective, trainer.rank(), 0, collective.count, values.data());
    aggregation::to_carriers(collective.reduction(), values.data(), buffer, collective.count);
  } else {
    write_input(collective, trainer.rank(), 0, collective.count, buffer);
  }
  shared::Submission entry{};
  entry.offset = collective.offset;
  entry.count = collective.count / (control::is_rank_ordered(collective.kind) ? trainer.size() : 1);
  entry.collective.root = collective.root;
  entry.collective.kind = static_cast<std::uint8_t>(collective.kind);
  entry.dtype = static_cast<std::uint8_t>(collective.dtype);
  entry.collective.op = static_cast<std::uint8_t>(collective.operation);
  entry.collective.lane = static_cast<std::uint8_t>(collective.lane);
  return trainer.submit(entry);
}

namespace {

// The ranks that a plan's oracle has for trainers, and back: what a job's trainers have wished for
// moves whole servers.
std::uint32_t in_plan(const dataplane::RankOrder& order, std::uint32_t rank, unsigned trainers) {
  return order.in_plan(rank / trainers) * trainers + rank % trainers;
}
std::uint32_t as_seen(const dataplane::RankOrder& order, std::uint32_t rank, unsigned trainers) {
  return order.as_seen(rank / trainers) * trainers + rank % trainers;
}

}  // namespace

Expected expected_result(const control::Plan& plan, const dataplane::RankOrder& order,
                         const Collective& collective, std::uint32_t rank) {
  const std::size_t size = aggregation::element_bytes(collective.dtype);
  const unsigned trainers = plan.placement().trainers_per_server();
  const cli::Oracle oracle(plan, {collective.kind, collective.dtype, collective.operation,
                                  collective.count, in_plan(order, collective.root, trainers),
                                  order.chunk_of_rank(), collective.carries()});
  std::vector<std::uint8_t> buffer(collective.count * size);
  std::size_t first_defined = collective.count;
  std::size_t defined = 0;
  oracle.for_each_block(
      in_plan(order, rank, trainers), 0, collective.count,
      [&](control::Rank from, std::size_t first, std::size_t length, void* out) {
        write_input(collective, as_seen(order, from, trainers), first, length, out);
      },
      [&](std::size_t first, std::size_t length, const void* expected) {
        std::memcpy(buffer.data() + first * size, expected, length * size);
        defined += length;
        first_defined = std::min(first_defined, first);
      });
  // What is defined is one range of the buffer: all of it, or a chunk.
  Expected result{defined == 0 ? 0 : first_defined, {}};
  const std::uint8_t* begin = buffer.data() + result.first * size;
  result.bytes.assign(begin, begin + defined * size);
  return result;
}

std::size_t wrong_elements(SimulatedTrainer& trainer, const Collective& collective,
                           const Expected& expected) {
  const std::size_t count = expected.bytes.size() / aggregation::element_bytes(collective.dtype);
  const std::uint8_t* found =
      trainer.at(collective.offset) + expected.first * collective.element_bytes();
  std::vector<std::uint8_t> values;
  if (collective.carries()) {
    values.resize(expected.bytes.size());
    aggregation::from_carriers(collective.reduction(), found, values.data(), count);
    found = values.data();
  }
  return cli::count_wrong(collective.dtype, expected.bytes.data(), found, count);
}

void scribble(SimulatedTrainer& trainer, const Collective& collective) {
  std::memset(trainer.at(collective.offset), 0xa5, collective.bytes());
}

}  // namespace gradcube::simulation
