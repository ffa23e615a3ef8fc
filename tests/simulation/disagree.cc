#include "tests/simulation/disagree.h"

#include <algorithm>

namespace gradcube::simulation {

namespace {

bool has_same_signature(const Collective& one, const Collective& other) {
  return one.kind == other.kind && one.root == other.root && one.count == other.count &&
         one.dtype == other.dtype && one.operation == other.operation;
}

void change_kind(Collective& order, std::uint32_t ranks, dataplane::SeededRandom& random) {
  order.kind = control::kCollectiveKinds[random.below(control::kCollectiveKinds.size())];
  if (order.kind == control::CollectiveKind::barrier) order.count = 0;
  if (control::is_rank_ordered(order.kind)) order.count -= order.count % ranks;
  if (!control::has_root(order.kind)) order.root = 0;
  if (!control::reduces(order.kind)) {
    order.operation = aggregation::Operation::sum;  // which stands for none
  } else if (!aggregation::supports(order.dtype, order.operation)) {
    order.dtype = aggregation::DataType::uint8;
  }
}

// Changes one thing, or nothing where it cannot be changed.
void change(Collective& order, std::uint32_t ranks, dataplane::SeededRandom& random) {
  const bool chunks = control::is_rank_ordered(order.kind);
  switch (random.below(5)) {
    case 0:
      if (order.kind == control::CollectiveKind::barrier) return;
      order.count = order.count == 0 ? (chunks ? ranks : 1) : order.count - (chunks ? ranks : 1);
      return;
    case 1:
      if (!control::reduces(order.kind)) return;
      do {
        order.operation = static_cast<aggregation::Operation>(
            (static_cast<unsigned>(order.operation) + 1) % aggregation::kOperations);
      } while (!aggregation::supports(order.dtype, order.operation));
      return;
    case 2: {
      // Of no more bytes, so that it fits where the right one would have been.
      const std::uint64_t room = order.bytes();
      order.dtype = order.dtype == aggregation::DataType::float32 ? aggregation::DataType::int32
                                                                  : aggregation::DataType::float32;
      order.count = std::min<std::uint64_t>(order.count, room / 8);
      if (chunks) order.count -= order.count % ranks;
      return;
    }
    case 3:
      if (control::has_root(order.kind)) order.root = (order.root + 1) % ranks;
      return;
    default:
      return change_kind(order, ranks, random);
  }
}

}  // namespace

void disagree(Collective& order, std::uint32_t ranks, dataplane::SeededRandom& random) {
  const Collective right = order;
  while (has_same_signature(order, right)) change(order, ranks, random);
}

}  // namespace gradcube::simulation
