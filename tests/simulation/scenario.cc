#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/topology.h"
#include "protocol/wire.h"
#include "tests/simulation/drawn_collectives.h"
#include "tests/simulation/trainers.h"
#include "trainer/shared_layout.h"

namespace gradcube::simulation {

namespace {

using dataplane::SeededRandom;

// Elements that are left free behind each buffer, so that every job can round its count up.
constexpr std::uint64_t kSlack = 64;
constexpr std::uint64_t kWidestElement = 8;
constexpr std::uint64_t kWidestCarrier = 16;

double up_to(SeededRandom& random, double most) {
  return most * static_cast<double>(random.below(1'000'001)) * 1e-6;
}

void draw_network(SeededRandom& random, control::ClusterSettings& settings) {
  constexpr std::array kTopologies = {
      "bcube:2,2", "torus:3,2", "star:4",    "star:3",      "torus:4,1", "star:2",  "bcube:3,2",
      "bcube:2,3", "bcube:3x2", "bcube:2x3", "bcube:3x2x2", "tree:2x2",  "tree:2x3"};
  settings.topology =
      control::parse_topology(kTopologies[random.below(kTopologies.size())], "topology");
  settings.mtu = one_in(random, 2) ? 1500 : 9000;
  const bool small = settings.topology.servers() <= 4;
  if (one_in(random, small ? 2 : 6)) {
    constexpr std::array<std::uint64_t, 4> kRates = {100'000'000, 200'000'000, 1'000'000'000,
                                                     10'000'000'000};
    const auto draw = [&] { return kRates[random.below(kRates.size())]; };
    settings.rates = control::LinkRates(draw());
    if (one_in(random, 2)) {
      std::vector<std::uint64_t> by_level(settings.topology.link_levels());
      std::generate(by_level.begin(), by_level.end(), draw);
      settings.rates = control::LinkRates(by_level);
    }
  }
  if (one_in(random, 2)) settings.delay_ns = static_cast<std::int64_t>(random.below(200'000));
  if (one_in(random, 3)) settings.queue_bytes = 64'000 + random.below(200'000);
  if (!one_in(random, 4)) settings.loss = up_to(random, one_in(random, 8) ? 0.3 : 0.1);
  if (one_in(random, 2)) settings.duplicate = up_to(random, 0.1);
  if (one_in(random, 2)) settings.reorder = up_to(random, 0.2);
  if (one_in(random, 3)) settings.corrupt = up_to(random, 0.05);
  settings.seed = random.next() >> 32;
}

// Some servers are absent, if the rest is in one piece. Drawn by itself, so that all else that a
// seed draws stays.
void draw_absent(std::uint64_t seed, control::ClusterSettings& settings) {
  SeededRandom random(SeededRandom(seed + 1).next());
  const control::Topology whole = settings.topology;
  if (!one_in(random, 4) || whole.servers() < 4) return;
  std::vector<bcube::ServerId> absent;
  for (bcube::ServerId server = 0; server < whole.servers(); ++server) {
    if (one_in(random, 4)) absent.push_back(server);
  }
  try {
    if (whole.servers() - absent.size() >= 2) settings.topology = whole.without(absent);
  } catch (const std::invalid_argument&) {
    // In pieces: all are there.
  }
}

// Frames come to any engine of their server, where there are several. Drawn by itself, likewise.
void draw_scattering(std::uint64_t seed, SimulationSettings& simulation) {
  SeededRandom random(SeededRandom(seed + 2).next());
  simulation.frames_are_scattered = simulation.lcores > 1 && one_in(random, 3);
}

// At every level some of the digits, and every combination of them whose server is not absent: at
// least two servers.
std::vector<bcube::ServerId> draw_members(SeededRandom& random, const bcube::AddressSpace& space) {
  const bool everyone = one_in(random, 2);
  std::vector<std::uint64_t> digits(space.levels(), UINT64_MAX);
  for (unsigned level = 0; !everyone && level < space.levels(); ++level) {
    if (one_in(random, 2)) digits[level] = 1 + random.below((1ULL << space.radix(level)) - 1);
  }
  std::vector<bcube::ServerId> members;
  for (const bcube::ServerId server : space.server_list()) {
    bool member = true;
    for (unsigned level = 0; level < space.levels(); ++level) {
      member = member && (digits[level] >> space.digit(server, level) & 1) != 0;
    }
    if (member) members.push_back(server);
  }
  return members.size() > 1 ? members : space.server_list();
}

void draw_jobs(SeededRandom& random, Scenario& scenario) {
  const bcube::AddressSpace& space = scenario.simulation.cluster.topology.space();
  scenario.jobs.resize(one_in(random, 3) ? 2 : 1);
  for (ScenarioJob& job : scenario.jobs) {
    job.options.members = draw_members(random, space);
    if (one_in(random, 2)) {
      job.options.trainers = 1 + static_cast<std::uint32_t>(random.below(3));
    }
    job.options.weight = 1 + static_cast<std::uint32_t>(random.below(8));
    job.options.lanes.resize(one_in(random, 2) ? 1 : 2 + random.below(3));
    for (control::LaneOptions& lane : job.options.lanes) {
      lane.priority = static_cast<std::int32_t>(random.below(7)) - 3;
    }
    if (!one_in(random, 4)) continue;
    job.ranks.resize(job.options.members.size());
    std::iota(job.ranks.begin(), job.ranks.end(), 0U);
    for (std::size_t i = job.ranks.size(); i > 1; --i) {
      std::swap(job.ranks[i - 1], job.ranks[random.below(i)]);
    }
  }
}

// Some lanes run another algorithm than the default, if it fits the members: `mesh` over relays
// where there are several levels.
void draw_algorithms(SeededRandom& random, Scenario& scenario) {
  const control::Topology& topology = scenario.simulation.cluster.topology;
  std::vector<std::string> names = control::algorithm_names();
  names.insert(names.end(),
               {"blueconnect:2x2,ring", "blueconnect:3x2", "hips:mesh,root", "hips:root,ring",
                "ps:1", "ps:1,0", "ps:2 0", "ps:1,0 0,1", "hips:2xroot", "hips:2xroot,mesh",
                "hips:mesh,ring", "hips:ring,mesh", "auto:1us,40us/8", "auto:0,0", "auto:5us,50us",
                "auto:50us,5us", "auto:300us,1us"});
  for (ScenarioJob& job : scenario.jobs) {
    const auto placement = control::Placement::of(topology, job.options.members, "members");
    for (control::LaneOptions& lane : job.options.lanes) {
      if (!one_in(random, 2)) continue;
      const std::string& name = names[random.below(names.size())];
      try {
        control::make_choice(name, topology, placement, "algorithm");
        lane.algorithm = name;
      } catch (const control::UsageError&) {
        // The lane keeps the default.
      }
    }
  }
}

// What the nodes tell each other may go astray, and what befalls a node.
void draw_nodes(SeededRandom& random, Scenario& scenario) {
  dataplane::MessageFaults& messages = scenario.simulation.messages;
  if (one_in(random, 2)) {
    messages.loss = 0.05 * static_cast<double>(random.below(7));
    messages.duplicate = 0.1 * static_cast<double>(random.below(4));
    if (one_in(random, 2)) messages.longest_delay = std::chrono::milliseconds(random.below(40));
  }
  if (scenario.misfortune != Misfortune::none || !one_in(random, 2)) return;
  constexpr auto kFirst = static_cast<unsigned>(Misfortune::node_death);
  scenario.misfortune = static_cast<Misfortune>(kFirst + random.below(kMisfortunes - kFirst));
  scenario.lasts = static_cast<std::int64_t>(
      random.below(one_in(random, 2) ? 500 * kMillisecond : 5'000 * kMillisecond));
  const bool may_last =
      scenario.misfortune == Misfortune::mute || scenario.misfortune == Misfortune::cut_off;
  if (may_last && one_in(random, 3)) scenario.lasts = dataplane::kNever;
}

// Links that go down, found out by greetings or by nobody. What befalls a node changes links, too.
void draw_outages(SeededRandom& random, Scenario& scenario) {
  if (befalls_a_node(scenario.misfortune)) return;
  scenario.simulation.links_are_watched = one_in(random, 2);
  scenario.simulation.cluster.greeting_ns =
      static_cast<std::uint64_t>(kMillisecond) + random.below(30 * kMillisecond);
  if (!one_in(random, 3)) return;
  scenario.outages.resize(1 + random.below(3));
  for (Outage& outage : scenario.outages) {
    outage.link = random.next();
    outage.from = static_cast<std::int64_t>(random.below(100 * kMillisecond));
    outage.until = outage.from + static_cast<std::int64_t>(
                                     random.below((one_in(random, 2) ? 50 : 1000) * kMillisecond));
  }
  std::sort(scenario.outages.begin(), scenario.outages.end(),
            [](const Outage& one, const Outage& other) { return one.until < other.until; });
}

// Some of them drop long frames alone. Drawn by itself, likewise.
void draw_lengths(std::uint64_t seed, Scenario& scenario) {
  constexpr std::uint32_t kShortest = 150;  // greetings pass
  SeededRandom random(SeededRandom(seed + 6).next());
  for (Outage& outage : scenario.outages) {
    if (!one_in(random, 3)) continue;
    const std::uint64_t most = scenario.simulation.cluster.mtu - kShortest;
    outage.mtu = kShortest + static_cast<std::uint32_t>(random.below(most));
  }
}

// A job that gets no answer from its leader in 2 s is given up. Where questions and answers take
// the links, these lose so little that one of the hundred questions in that time is answered.
void let_answers_arrive(SimulationSettings& simulation) {
  if (!simulation.messages_pass_the_fabric) return;
  simulation.cluster.loss = std::min(simulation.cluster.loss, 0.15);
}

// Signs of life come so often that chance alone makes no server silent: over the longest path that
// there may be, none of a second, the least that a daemon is given, arrives once in 10^9 times.
void greet_often(SimulationSettings& simulation) {
  double arrives = 1 - simulation.messages.loss;
  if (simulation.messages_pass_the_fabric) {
    const control::ClusterSettings& links = simulation.cluster;
    arrives *= std::pow((1 - links.loss) * (1 - links.corrupt), protocol::kMaxHops);
  }
  const double a_second = std::log(1e-9) / std::log1p(-arrives);
  simulation.timing.greetings.interval =
      std::chrono::milliseconds(static_cast<int>(std::clamp(1000 / a_second, 4.0, 50.0)));
}

// Where signs of life take the same links, these are up again before a server is given up.
void shorten_outages(Scenario& scenario) {
  if (!scenario.simulation.messages_pass_the_fabric) return;
  for (Outage& outage : scenario.outages) {
    outage.until = std::min(outage.until, 600 * kMillisecond);
  }
}

// In some jobs results do not depend on the order of additions, and no average overflows. Then the
// inputs that would overflow in others stay.
void draw_reproducible(SeededRandom& random, Scenario& scenario) {
  for (ScenarioJob& job : scenario.jobs) job.options.reproducible = one_in(random, 4);
  if (scenario.jobs[0].options.reproducible && scenario.misfortune == Misfortune::overflow) {
    scenario.misfortune = Misfortune::none;
  }
}

void lay_out_buffers(Scenario& scenario) {
  std::uint64_t offset = shared::kHeapOffset;
  for (std::size_t i = 0; i < scenario.collectives.size(); ++i) {
    scenario.collectives[i].offset = offset;
    offset += scenario.room(i);
  }
}

// On a torus, and where servers are absent, a server may relay for jobs that it has no part in.
// Their frames find another way only if links are watched.
void watch_relays(Scenario& scenario) {
  control::ClusterSettings& cluster = scenario.simulation.cluster;
  const bcube::AddressSpace& space = cluster.topology.space();
  if ((!space.cabled() && space.is_whole()) || !befalls_a_node(scenario.misfortune)) return;
  scenario.simulation.links_are_watched = true;
  cluster.greeting_ns = 10 * kMillisecond;
}

}  // namespace

void draw_schedule(std::uint64_t seed, SimulationSettings& simulation) {
  SeededRandom random(SeededRandom(seed + 4).next());
  constexpr std::array<std::int64_t, 4> kIterations = {1'000, 3'000, 10'000, 10'000};
  simulation.iteration = kIterations[random.below(kIterations.size())];
  simulation.control_runs_one_in = 1 + static_cast<unsigned>(random.below(20));
  simulation.pollers_go_on = true;
  if (one_in(random, 4)) {
    simulation.cluster.server_lcores = 2 + static_cast<unsigned>(random.below(4));
  }
}

Collective Scenario::collective(unsigned job, std::size_t index) const {
  const control::JobOptions& options = jobs[job].options;
  const std::uint32_t ranks = options.all_trainers();
  Collective own = collectives[index];
  own.salt += job * 1000;
  own.root = control::has_root(own.kind) ? own.root % ranks : 0;
  own.lane %= static_cast<unsigned>(options.lanes.size());
  if (control::is_rank_ordered(own.kind)) own.count = (own.count + ranks - 1) / ranks * ranks;
  if (job != 0) own.overflows = false;
  own.reproduced_among = options.reproducible ? ranks : 0;
  return own;
}

std::uint64_t Scenario::room(std::size_t index) const {
  const bool carriers = std::any_of(
      jobs.begin(), jobs.end(), [](const ScenarioJob& job) { return job.options.reproducible; });
  const Collective& drawn = collectives[index];
  const std::uint64_t bytes = carriers ? drawn.count * kWidestCarrier : drawn.bytes();
  const std::uint64_t slack = kSlack * (carriers ? kWidestCarrier : kWidestElement);
  return (bytes + slack + 63) / 64 * 64;
}

Scenario draw_scenario(std::uint64_t seed) {
  SeededRandom random(SeededRandom(seed).next());
  Scenario scenario;
  draw_network(random, scenario.simulation.cluster);
  draw_absent(seed, scenario.simulation.cluster);
  scenario.simulation.seed = random.next();
  scenario.simulation.lcores = 1 + static_cast<unsigned>(random.below(6));
  draw_scattering(seed, scenario.simulation);
  if (one_in(random, 3)) scenario.simulation.stalls = 0.001;
  draw_jobs(random, scenario);
  draw_work(random, scenario);
  if (one_in(random, 2)) scenario.misfortune = static_cast<Misfortune>(random.below(6));
  draw_nodes(random, scenario);
  draw_algorithms(random, scenario);
  draw_outages(random, scenario);
  draw_lengths(seed, scenario);
  scenario.victim = static_cast<unsigned>(random.below(scenario.jobs[0].options.all_trainers()));
  scenario.when = random.below(scenario.collectives.size());
  if (scenario.misfortune == Misfortune::overflow) {
    make_overflow(scenario.collectives[scenario.when]);
  }
  scenario.guests = one_in(random, 3);
  scenario.simulation.messages_pass_the_fabric = one_in(random, 3);
  draw_schedule(seed, scenario.simulation);
  let_answers_arrive(scenario.simulation);
  greet_often(scenario.simulation);
  shorten_outages(scenario);
  scenario.limit = 600 * kSecond;
  watch_relays(scenario);
  draw_reproducible(random, scenario);
  scenario.simulation.frames_are_authenticated =
      scenario.simulation.messages_pass_the_fabric || seed % 4 == 0;
  if (scenario.simulation.frames_are_authenticated) scenario.simulation.attack = drawn_attack(seed);
  lay_out_buffers(scenario);
  scenario.simulation.paths_are_probed = one_in(random, 2);
  scenario.simulation.cluster.probing_ns = kMillisecond + random.below(30 * kMillisecond);
  return scenario;
}

}  // namespace gradcube::simulation
