#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "control/plan/topology.h"

namespace gradcube::simulation {

namespace {

using aggregation::DataType;
using aggregation::Operation;
using dataplane::SeededRandom;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

bool one_in(SeededRandom& random, std::uint64_t chances) { return random.below(chances) == 0; }

double up_to(SeededRandom& random, double most) {
  return most * static_cast<double>(random.below(1'000'001)) * 1e-6;
}

void draw_network(SeededRandom& random, control::ClusterSettings& settings) {
  constexpr std::array kTopologies = {"bcube:2,2", "bcube:2,2", "star:4",    "star:3",
                                      "bcube:4,1", "star:2",    "bcube:3,2", "bcube:2,3"};
  settings.topology =
      control::parse_topology(kTopologies[random.below(kTopologies.size())], "topology");
  settings.mtu = one_in(random, 2) ? 1500 : 9000;
  const bool small = settings.topology.servers() <= 4;
  if (one_in(random, small ? 2 : 6)) {
    constexpr std::array<std::uint64_t, 4> kRates = {100'000'000, 200'000'000, 1'000'000'000,
                                                     10'000'000'000};
    settings.rate_bps = kRates[random.below(kRates.size())];
  }
  if (one_in(random, 2)) settings.delay_ns = static_cast<std::int64_t>(random.below(200'000));
  if (one_in(random, 3)) settings.queue_bytes = 64'000 + random.below(200'000);
  if (!one_in(random, 4)) settings.loss = up_to(random, one_in(random, 8) ? 0.3 : 0.1);
  if (one_in(random, 2)) settings.duplicate = up_to(random, 0.1);
  if (one_in(random, 2)) settings.reorder = up_to(random, 0.2);
  if (one_in(random, 3)) settings.corrupt = up_to(random, 0.05);
  settings.seed = random.next() >> 32;
}

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

void draw_work(SeededRandom& random, Scenario& scenario) {
  const std::size_t collectives = 1 + random.below(8);
  std::uint64_t offset = shared::kHeapOffset;
  for (std::size_t i = 0; i < collectives; ++i) {
    Collective collective;
    collective.offset = offset;
    collective.count = draw_count(random, scenario.simulation.cluster);
    do {
      collective.dtype = static_cast<DataType>(random.below(aggregation::kDataTypes));
      collective.operation = static_cast<Operation>(random.below(aggregation::kOperations));
    } while (!aggregation::supports(collective.dtype, collective.operation));
    collective.salt = i + 1;
    offset += (collective.bytes() + 127) / 64 * 64;
    scenario.collectives.push_back(collective);
  }
  scenario.jobs = one_in(random, 3) ? 2 : 1;
  scenario.most_in_flight = 1 + static_cast<unsigned>(random.below(collectives));
  scenario.pause =
      one_in(random, 3) ? 0 : static_cast<std::int64_t>(random.below(3 * kMillisecond));
}

// Of no more bytes than before, or of one element: there is room for that.
void make_overflow(Collective& collective) {
  const std::uint64_t bytes = collective.bytes();
  const bool wide = aggregation::element_bytes(collective.dtype) == 8;
  collective.dtype = wide ? DataType::int64 : DataType::int32;
  collective.count =
      std::max<std::uint64_t>(1, bytes / aggregation::element_bytes(collective.dtype));
  collective.operation = Operation::average;
  collective.overflows = true;
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
  SeededRandom random(SeededRandom(seed).next());
  Scenario scenario;
  draw_network(random, scenario.simulation.cluster);
  scenario.simulation.seed = random.next();
  scenario.simulation.lcores = 1 + static_cast<unsigned>(random.below(3));
  if (one_in(random, 3)) scenario.simulation.stalls = 0.001;
  draw_work(random, scenario);
  if (one_in(random, 2)) scenario.misfortune = static_cast<Misfortune>(random.below(6));
  const unsigned servers = scenario.simulation.cluster.topology.servers();
  scenario.victim = static_cast<bcube::ServerId>(random.below(servers));
  scenario.when = random.below(scenario.collectives.size());
  if (scenario.misfortune == Misfortune::overflow) {
    make_overflow(scenario.collectives[scenario.when]);
  }
  scenario.guests = one_in(random, 3);
  scenario.limit = 120 * kSecond;
  return scenario;
}

std::string describe(const Scenario& scenario) {
  constexpr std::array kMisfortunes = {"nothing", "a disagreement",   "a leave",
                                       "a death", "a scribbled ring", "an overflow"};
  const control::ClusterSettings& cluster = scenario.simulation.cluster;
  std::string text = fmt::format(
      "{} mtu {} rate {} delay {} queue {} loss {:.4f} dup {:.4f} reorder {:.4f} corrupt {:.4f}, "
      "{} lcores, stalls {}, {} jobs, guests {}, {} in flight, pause {}, {} at server {} "
      "collective {}:",
      cluster.topology.spec(), cluster.mtu, cluster.rate_bps.value_or(0), cluster.delay_ns,
      cluster.queue_bytes, cluster.loss, cluster.duplicate, cluster.reorder, cluster.corrupt,
      scenario.simulation.lcores, scenario.simulation.stalls, scenario.jobs, scenario.guests,
      scenario.most_in_flight, scenario.pause,
      kMisfortunes[static_cast<std::size_t>(scenario.misfortune)], scenario.victim,
      scenario.when + 1);
  for (const Collective& collective : scenario.collectives) {
    text +=
        fmt::format(" {}x{}/{}", collective.count, aggregation::data_type_name(collective.dtype),
                    aggregation::operation_name(collective.operation));
  }
  return text;
}

}  // namespace gradcube::simulation
