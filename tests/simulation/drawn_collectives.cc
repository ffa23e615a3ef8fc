#include "tests/simulation/drawn_collectives.h"

#include <algorithm>

#include "aggregation/element.h"
#include "control/plan/collective_kind.h"
#include "tests/simulation/trainers.h"
#include "trainer/shared_layout.h"

namespace gradcube::simulation {

namespace {

using aggregation::DataType;
using aggregation::Operation;
using control::CollectiveKind;
using dataplane::SeededRandom;

std::uint64_t draw_count(SeededRandom& random, const control::ClusterSettings& settings) {
  const std::uint64_t segment = settings.mtu / 4;
  switch (random.below(8)) {
    case 0:
      return random.below(3);
    case 1:
      return settings.topology.servers() - 1;
    case 2:
      return segment - 20 + random.below(41);
    case 3:
      return 16 * settings.topology.servers() * settings.topology.levels() * (1 + random.below(9));
    case 4:
    case 5:
      return random.below(3000);
    case 6:
      return random.below(20'000);
    default:
      return random.below(one_in(random, 4) ? 200'000 : 50'000);
  }
}

// What a trainer may submit: `bytes` where nothing is added, else what the operation supports.
void draw_type(SeededRandom& random, Collective& collective) {
  collective.kind = control::kCollectiveKinds[random.below(control::kCollectiveKinds.size())];
  if (one_in(random, 3)) collective.kind = CollectiveKind::all_reduce;
  const auto any = [&] {
    return aggregation::kPlainTypes[random.below(aggregation::kPlainTypes.size())];
  };
  collective.dtype = any();
  if (!control::reduces(collective.kind)) return;
  do {
    collective.dtype = any();
    collective.operation = static_cast<Operation>(random.below(aggregation::kOperations));
  } while (!aggregation::supports(collective.dtype, collective.operation));
}

}  // namespace

void draw_work(SeededRandom& random, Scenario& scenario) {
  // Rarely, more collectives than an executor runs at once.
  const bool many = one_in(random, 12);
  const std::size_t collectives = many ? 65 + random.below(100) : 1 + random.below(8);
  for (std::size_t i = 0; i < collectives; ++i) {
    Collective collective;
    draw_type(random, collective);
    collective.count = many ? random.below(300) : draw_count(random, scenario.simulation.cluster);
    if (collective.kind == CollectiveKind::barrier) collective.count = 0;
    collective.root = static_cast<std::uint32_t>(random.below(1 << 16));
    collective.lane = static_cast<unsigned>(random.below(shared::kMaxLanes));
    collective.salt = i + 1;
    scenario.collectives.push_back(collective);
  }
  scenario.most_in_flight = 1 + static_cast<unsigned>(random.below(collectives));
  if (many) scenario.most_in_flight = static_cast<unsigned>(collectives);
  scenario.pause =
      one_in(random, 3) ? 0 : static_cast<std::int64_t>(random.below(3 * kMillisecond));
  if (many) scenario.pause /= 100;
  if (!one_in(random, 4)) return;
  scenario.late_rank = static_cast<unsigned>(random.below(scenario.jobs[0].options.all_trainers()));
  scenario.late_until = static_cast<std::int64_t>(random.below(30 * kMillisecond));
}

void make_overflow(Collective& collective) {
  const std::uint64_t bytes = collective.bytes();
  const bool wide = aggregation::element_bytes(collective.dtype) == 8;
  collective.dtype = wide ? DataType::int64 : DataType::int32;
  collective.count =
      std::max<std::uint64_t>(1, bytes / aggregation::element_bytes(collective.dtype));
  collective.operation = Operation::average;
  if (!control::reduces(collective.kind) || collective.kind == CollectiveKind::barrier) {
    collective.kind = CollectiveKind::all_reduce;
  }
  collective.overflows = true;
}

}  // namespace gradcube::simulation
