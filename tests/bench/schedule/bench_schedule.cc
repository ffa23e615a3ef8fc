// How well the schedule fills the links, independent of the speed of this host. One thread iterates
// a whole embedded cluster under a virtual clock, which advances a fixed step per iteration. The
// bench measures virtual time, so a busy host changes nothing. Efficiency is the bound of BML's
// paper, 2(N-1)/(kN) of the gradient at the slowest link's rate, divided by the virtual time,
// whatever algorithm runs.
//
//   bench_schedule [--topology bcube:3,2] [--rate 200mbit] [--mtu 9000] [--bytes 12.5M]
//                  [--algorithm bml] [--loss 0] [--iterations 1] [--step 2us] [--stagger 0us]
//                  [--json]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "control/base/units.h"
#include "control/plan/algorithms.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/daemon/packet_sizing.h"
#include "dataplane/engine/event_queue.h"
#include "dataplane/host/eal.h"
#include "tests/support/admissions.h"

namespace {

using namespace gradcube;
using dataplane::LocalCluster;

// A trainer's side of a session, written straight into the shared region.
struct Trainer {
  std::uint8_t* base = nullptr;
  std::uint64_t submitted = 0;

  shared::RegionHeader& header() const { return *reinterpret_cast<shared::RegionHeader*>(base); }
  void submit(std::uint64_t count) {
    auto* ring = reinterpret_cast<shared::Submission*>(base + shared::kSubmissions);
    shared::Submission submission{};
    submission.request = submitted + 1;
    submission.offset = shared::kHeapOffset;
    submission.count = count;
    ring[submitted % shared::kSubmissionEntries] = submission;
    header().submission_tail.store(++submitted, std::memory_order_release);
  }
  bool done() const {
    const std::uint64_t completed = header().completion_tail.load(std::memory_order_acquire);
    header().completion_head.store(completed, std::memory_order_release);
    return completed == submitted;
  }
};

struct Options {
  control::ClusterSettings settings;
  std::string algorithm{"bml"};
  std::uint64_t bytes = 12'500'000;
  unsigned iterations = 1;
  std::int64_t step = 2'000;
  std::int64_t stagger = 0;
  std::int64_t pause = 0;
  unsigned lcores = 2;
};

struct Outcome {
  double seconds = 0;
  double efficiency = 0;
  std::uint64_t resent = 0;
  std::uint64_t lost = 0;
  std::uint64_t queue_drops = 0;
  std::uint64_t queue_peak = 0;
  double acknowledgements_per_segment = 0;
};

void collect(const LocalCluster& cluster, Outcome& outcome) {
  std::uint64_t segments = 0;
  std::uint64_t acknowledgements = 0;
  for (const dataplane::EngineAt& at : cluster.engines()) {
    outcome.resent += at.engine->counters().resent;
    segments += at.engine->counters().segments_sent;
    acknowledgements += at.engine->counters().acknowledgements_sent;
  }
  for (const dataplane::EmbeddedFabric::SwitchAt& at : cluster.emulated().switches()) {
    for (std::uint16_t port = 0; port < at.fabric->ports(); ++port) {
      const dataplane::SwitchPortCounts counts = at.fabric->counts(port);
      outcome.lost += counts.dropped_loss;
      outcome.queue_drops += counts.dropped_queue;
      outcome.queue_peak = std::max(outcome.queue_peak, counts.queue_peak_bytes);
    }
  }
  outcome.acknowledgements_per_segment = static_cast<double>(acknowledgements) /
                                         static_cast<double>(std::max<std::uint64_t>(segments, 1));
}

Outcome run(const Options& options) {
  dataplane::VirtualClock clock;
  dataplane::EventQueue events;
  std::vector<control::Lcore> lcores;
  for (unsigned i = 0; i < options.lcores; ++i) lcores.push_back({i, -1});
  dataplane::LocalClusterOptions cluster_options;
  cluster_options.settings = options.settings;
  cluster_options.lcores = lcores;
  LocalCluster cluster(cluster_options, clock, aggregation::select_kernels(512), events);
  dataplane::Admissions admissions(cluster.nodes());
  std::vector<Trainer> trainers;
  dataplane::TrainerRequest request{"bench", 1, 0, options.bytes + 4096};
  request.options.lanes.resize(1);
  request.options.lanes[0].algorithm = options.algorithm;
  for (const auto id : admissions.join_all(request)) {
    trainers.push_back({admissions.memory(id)});
  }
  dataplane::SeededRandom random(options.settings.seed);
  const auto at_most = [&random](std::int64_t time) {
    return time == 0 ? 0
                     : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(time)));
  };
  std::vector<std::int64_t> pauses_until(cluster.pollers().size(), 0);
  const std::int64_t begin = clock.now();
  for (unsigned iteration = 0; iteration < options.iterations; ++iteration) {
    std::vector<std::int64_t> submit_at;
    for (std::size_t i = 0; i < trainers.size(); ++i) {
      submit_at.push_back(clock.now() + at_most(options.stagger));
    }
    for (bool done = false; !done;) {
      for (std::size_t i = 0; i < trainers.size(); ++i) {
        if (trainers[i].submitted == iteration && clock.now() >= submit_at[i]) {
          trainers[i].submit(options.bytes / sizeof(float));
        }
      }
      for (unsigned round = 0; round < 16; ++round) {
        for (std::size_t i = 0; i < pauses_until.size(); ++i) {
          if (clock.now() < pauses_until[i]) continue;
          cluster.pollers()[i]->iterate();
          pauses_until[i] = clock.now() + at_most(options.pause);
        }
        clock.advance(options.step);
      }
      done = std::all_of(trainers.begin(), trainers.end(), [&](const Trainer& t) {
        return t.submitted == iteration + 1 && t.done();
      });
      if (clock.now() - begin > 600'000'000'000)
        throw std::runtime_error("no end within 600 virtual seconds");
    }
  }
  Outcome outcome;
  outcome.seconds = static_cast<double>(clock.now() - begin) * 1e-9 / options.iterations;
  const double servers = cluster.topology().servers();
  const double levels = cluster.topology().levels();
  const double bound =
      2 * (servers - 1) / (levels * servers) * static_cast<double>(options.bytes) * 8 /
      static_cast<double>(std::max<std::uint64_t>(1, options.settings.rates.slowest()));
  outcome.efficiency = options.settings.rates.limited() ? bound / outcome.seconds : 0;
  collect(cluster, outcome);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Virtual time of an all-reduce on a shaped embedded cluster, against the paper's bound."};
  std::map<std::string, std::string> settings = {
      {"topology", "bcube:3,2"}, {"rate", "200mbit"}, {"mtu", "9000"},    {"queue", "128K"},
      {"delay", "0us"},          {"loss", "0"},       {"duplicate", "0"}, {"reorder", "0"},
      {"corrupt", "0"},          {"seed", "1"}};
  for (auto& [name, value] : settings) app.add_option("--" + name, value)->capture_default_str();
  std::string bytes = "12.5M";
  std::string step = "2us";
  Options options;
  bool json = false;
  app.add_option("--bytes", bytes)->capture_default_str();
  app.add_option("--step", step, "virtual time per iteration of all pollers")
      ->capture_default_str();
  std::string stagger = "0us";
  app.add_option("--stagger", stagger, "trainers submit at random within this time")
      ->capture_default_str();
  std::string pause = "0us";
  app.add_option("--pause", pause, "after each iteration a poller pauses at random up to this long")
      ->capture_default_str();
  app.add_option("--algorithm", options.algorithm)->capture_default_str();
  app.add_option("--iterations", options.iterations)->capture_default_str();
  app.add_option("--lcores", options.lcores)->capture_default_str();
  app.add_flag("--json", json);
  CLI11_PARSE(app, argc, argv);
  try {
    for (const auto& [name, value] : settings) {
      control::apply_setting(options.settings, name, value, "--" + name);
    }
    options.bytes = control::parse_size(bytes, "--bytes");
    options.step = control::parse_duration(step, "--step");
    options.stagger = control::parse_duration(stagger, "--stagger");
    options.pause = control::parse_duration(pause, "--pause");
    dataplane::EalOptions eal_options;
    eal_options.cores = {dataplane::usable_cores().front()};
    eal_options.memory_megabytes = dataplane::packet_megabytes(options.settings, options.lcores);
    const dataplane::Eal eal(eal_options);
    const Outcome outcome = run(options);
    const nlohmann::ordered_json row = {
        {"seconds", outcome.seconds},
        {"efficiency", outcome.efficiency},
        {"resent", outcome.resent},
        {"lost", outcome.lost},
        {"queue_drops", outcome.queue_drops},
        {"queue_peak_bytes", outcome.queue_peak},
        {"acknowledgements_per_segment", outcome.acknowledgements_per_segment}};
    if (json) {
      std::cout << row << "\n";
    } else {
      for (const auto& [key, value] : row.items()) std::cout << key << " " << value << "  ";
      std::cout << "\n";
    }
  } catch (const std::exception& error) {
    std::cerr << "bench_schedule: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
