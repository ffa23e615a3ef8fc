#include "tests/simulation/random_hub.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "tests/simulation/hub_job.h"

namespace gradcube::simulation {

namespace {

enum class Blow {
  none,
  death,         // of a trainer
  leave,         // of one, in order
  disagreement,  // on a collective: the job goes on without the hub
  rates,         // one pushes with another learning rate
  node_death,
  node_pause,
  cut_off,
};
constexpr unsigned kBlows = 8;

constexpr float kRate = 0.5F;
// What a disagreement is about: as long as the shortest key.
constexpr std::uint64_t kShortest = 16;

struct Draw {
  SimulationSettings simulation;
  std::vector<control::HubKey> keys;
  std::string algorithm;
  std::vector<std::uint32_t> aggregators;
  unsigned trainers = 1;  // of a server
  unsigned rounds = 0;
  // Behind the weights every other round applies what the one before has accumulated.
  bool accumulates = false;
  std::int64_t pause = 0;  // the longest before a push
  Blow blow = Blow::none;
  std::size_t victim = 0;       // of the trainers, modulo how many there are
  bool of_aggregators = false;  // or of the aggregators, where their node is struck
  std::int64_t strikes = 0;     // after all are admitted
  std::int64_t lasts = 0;       // of a pause or a cut
};

// The other servers are 2, 4 or 8, too.
void draw_aggregators(dataplane::SeededRandom& random, Draw& drawn) {
  constexpr std::array<std::array<const char*, 3>, 3> kTopologies = {{
      {"star:3", "torus:5,1", "bcube:3,2"},
      {"bcube:2,2", "star:6", "bcube:3x2"},
      {"star:5", "star:7", "torus:7,1"},
  }};
  const std::uint64_t count = random.below(4);
  drawn.of_aggregators = random.below(2) == 0;
  if (count == 0) return;
  control::ClusterSettings& cluster = drawn.simulation.cluster;
  control::apply_setting(cluster, "topology", kTopologies[count - 1][random.below(3)], "topology");
  while (drawn.aggregators.size() < count) {
    const auto server = static_cast<std::uint32_t>(random.below(cluster.topology.servers()));
    if (std::ranges::count(drawn.aggregators, server) == 0) drawn.aggregators.push_back(server);
  }
  std::ranges::sort(drawn.aggregators);
}

Draw draw(std::uint64_t seed) {
  dataplane::SeededRandom random(dataplane::SeededRandom(seed ^ 0x4875625).next());
  const auto one_in = [&random](std::uint64_t chances) { return random.below(chances) == 0; };
  // The trainers are 2, 4 or 8, so that means are exact.
  constexpr std::array kTopologies = {"bcube:2,2", "star:4", "star:2", "torus:4,1"};
  constexpr std::array kAlgorithms = {"", "ps", "mesh", "ring"};
  Draw drawn;
  const double loss = one_in(2) ? 0 : 0.0001 * static_cast<double>(random.below(500));
  drawn.simulation = settings_of({{"topology", kTopologies[random.below(kTopologies.size())]},
                                  {"loss", fmt::format("{}", loss)},
                                  {"mtu", one_in(2) ? "1500" : "9000"}});
  drawn.simulation.seed = random.next();
  drawn.simulation.lcores = 1 + static_cast<unsigned>(random.below(6));
  drawn.algorithm = kAlgorithms[random.below(kAlgorithms.size())];
  drawn.trainers = one_in(3) ? 2 : 1;
  const auto keys = 1 + random.below(4);
  for (std::uint64_t key = 0; key < keys; ++key) {
    drawn.keys.push_back({fmt::format("key-{}", key),
                          kShortest + random.below(one_in(3) ? 20'000 : 500),
                          aggregation::DataType::float32});
  }
  drawn.rounds = 2 + static_cast<unsigned>(random.below(5));
  if (one_in(2)) drawn.pause = static_cast<std::int64_t>(random.below(2 * kMillisecond));
  drawn.blow = static_cast<Blow>(random.below(kBlows));
  drawn.victim = random.below(8);
  drawn.strikes =
      static_cast<std::int64_t>(random.below(one_in(2) ? kMillisecond : 10 * kMillisecond));
  drawn.lasts =
      static_cast<std::int64_t>(random.below(one_in(2) ? 500 * kMillisecond : 4 * kSecond));
  draw_schedule(seed, drawn.simulation);
  drawn.simulation.frames_are_authenticated = seed % 4 == 0;
  drawn.accumulates = one_in(2);
  if (drawn.simulation.frames_are_authenticated) drawn.simulation.attack = drawn_attack(seed);
  draw_aggregators(random, drawn);
  return drawn;
}

float first_weight(std::uint32_t key, std::uint64_t element) {
  return static_cast<float>((key * 5 + element * 3) % 64) / 4 + 1;
}
float gradient(unsigned rank, std::uint32_t key, std::uint64_t element, unsigned round) {
  return static_cast<float>((rank * 31 + key * 7 + element * 13 + round * 101) % 33) - 16;
}

class HubRun {
 public:
  explicit HubRun(std::uint64_t seed)
      : drawn_(draw(seed)),
        cluster_(drawn_.simulation),
        job_(cluster_, drawn_.keys, "sgd:lr=0.5", drawn_.algorithm, drawn_.aggregators,
             drawn_.trainers, 4096, 1, drawn_.accumulates),
        random_(seed ^ 2) {}

  Outcome play() {
    job_.make();
    workers_.resize(job_.trainers().size());
    for (Worker& worker : workers_) worker.keys.resize(drawn_.keys.size());
    strikes_at_ = cluster_.now() + drawn_.strikes;
    if (!cluster_.run_until([this] { return step(); }, 120 * kSecond))
      complain("pushes do not end");
    if (over_at_ != dataplane::kNever) end_blow();
    // Long enough for a job to end everywhere, and for its hub to be taken back by mistake.
    cluster_.run_for(5 * kSecond);
    check_all();
    outcome_.virtual_time = cluster_.now();
    outcome_.trace = cluster_.trace();
    leave_all();
    return std::move(outcome_);
  }

 private:
  struct Key {
    std::optional<unsigned> steps;  // after its last push that has ended well
    bool pushed = false;
    bool failed = false;
    std::int64_t pushes_at = 0;
  };
  struct Worker {
    std::vector<Key> keys;
    std::map<std::uint64_t, std::uint32_t> requests;
    bool gone = false;     // left, died, or its daemon is gone
    bool stopped = false;  // a push has failed, or it disagrees
  };

  SimulatedTrainer& trainer(std::size_t i) { return *job_.trainers()[i]; }
  std::size_t victim() const { return drawn_.victim % workers_.size(); }

  void complain(const std::string& what) {
    if (outcome_.complaints.size() < 10) outcome_.complaints.push_back("hub: " + what);
  }

  shared::PushKind kind_of(unsigned round) const {
    if (round == 0) return shared::PushKind::weights;
    if (!drawn_.accumulates) return shared::PushKind::gradients;
    return round % 2 == 1 ? shared::PushKind::accumulated : shared::PushKind::applied;
  }

  float mean(std::uint32_t key, std::uint64_t element, unsigned round) const {
    float sum = 0;
    for (unsigned rank = 0; rank < workers_.size(); ++rank) {
      sum += gradient(rank, key, element, round);
    }
    return sum / static_cast<float>(workers_.size());
  }

  const std::vector<float>& expected(std::uint32_t key, unsigned steps) {
    auto [known, fresh] = expected_.try_emplace({key, steps});
    std::vector<float>& weights = known->second;
    if (!fresh) return weights;
    weights.resize(drawn_.keys[key].elements);
    for (std::uint64_t e = 0; e < weights.size(); ++e) {
      float weight = first_weight(key, e);
      for (unsigned round = 1; round <= steps; ++round) {
        const shared::PushKind kind = kind_of(round);
        if (kind == shared::PushKind::gradients) weight -= kRate * mean(key, e, round);
        if (kind == shared::PushKind::applied) {
          weight -= kRate * HubJob::kScale * mean(key, e, round - 1);
        }
      }
      weights[e] = weight;
    }
    return weights;
  }

  void check(std::size_t i, std::uint32_t key, const char* when) {
    const Key& its = workers_[i].keys[key];
    if (!its.steps.has_value() || its.failed || its.pushed) return;
    if (job_.weights(trainer(i), key) != expected(key, *its.steps)) {
      complain(fmt::format("rank {} has not the weights of key {} after step {} {}", i, key,
                           *its.steps, when));
    }
  }

  void check_squares(std::uint32_t key, unsigned round, double squares) {
    const auto [known, fresh] = squares_.try_emplace({key, round}, squares);
    double right = 0;
    for (std::uint64_t e = 0; fresh && e < drawn_.keys[key].elements; ++e) {
      const double one = mean(key, e, round);
      right += one * one;
    }
    if (known->second != squares || (fresh && std::abs(squares - right) > 1e-6 * right)) {
      complain(fmt::format("the squares of key {} in round {} are {}", key, round, squares));
    }
  }

  void take_ends(std::size_t i) {
    Worker& worker = workers_[i];
    for (const shared::Completion& end : trainer(i).take_completions()) {
      const auto found = worker.requests.find(end.request);
      if (found == worker.requests.end()) {  // the disagreement itself
        if (end.code == 0) complain("a collective on which trainers disagree has succeeded");
        continue;
      }
      Key& key = worker.keys[found->second];
      key.pushed = false;
      key.failed = end.code != 0;
      if (key.failed) {
        worker.stopped = true;
        ++outcome_.failed;
      } else {
        key.steps = key.steps.has_value() ? *key.steps + 1 : 0;
        key.pushes_at = cluster_.now() + pause();
        if (kind_of(*key.steps) == shared::PushKind::accumulated) {
          check_squares(found->second, *key.steps, std::bit_cast<double>(end.bytes));
        }
        ++outcome_.succeeded;
        check(i, found->second, "at the end of its push");
      }
    }
  }

  std::int64_t pause() {
    if (drawn_.pause == 0) return 0;
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(drawn_.pause)));
  }

  void push_some(std::size_t i) {
    Worker& worker = workers_[i];
    for (std::uint32_t number = 0; number < worker.keys.size() && !worker.stopped; ++number) {
      Key& key = worker.keys[number];
      if (key.pushed || key.failed || (key.steps.has_value() && *key.steps == drawn_.rounds))
        continue;
      if (cluster_.now() < key.pushes_at) {
        cluster_.look_at(key.pushes_at);
        continue;
      }
      check(i, number, "before the next one");
      key.pushed = true;
      const unsigned round = key.steps.has_value() ? *key.steps + 1 : 0;
      const bool is_odd =
          drawn_.blow == Blow::rates && i == victim() && cluster_.now() >= strikes_at_;
      const std::uint64_t request = job_.push(
          trainer(i), number, kind_of(round),
          [round](unsigned rank, std::uint32_t of, std::uint64_t element) {
            return round == 0 ? first_weight(of, element) : gradient(rank, of, element, round);
          },
          is_odd ? 0.25 : shared::kOwnRate);
      worker.requests[request] = number;
    }
  }

  // True when all that stay are through.
  bool step() {
    if (cluster_.now() >= strikes_at_) strike();
    if (cluster_.now() >= over_at_) end_blow();
    cluster_.look_at(std::min(strikes_at_, over_at_));
    bool all_done = true;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].gone) continue;
      take_ends(i);
      if (workers_[i].gone || still_ == trainer(i).server()) continue;
      push_some(i);
      all_done = all_done && trainer(i).in_flight() == 0;
    }
    return (all_done && over_at_ == dataplane::kNever) || !outcome_.complaints.empty();
  }

  void strike() {
    strikes_at_ = dataplane::kNever;
    const std::vector<std::uint32_t>& aggregators = drawn_.aggregators;
    const bcube::ServerId server = drawn_.of_aggregators && !aggregators.empty()
                                       ? aggregators[drawn_.victim % aggregators.size()]
                                       : trainer(victim()).server();
    switch (drawn_.blow) {
      case Blow::none:
      case Blow::rates:
        return;
      case Blow::death:
      case Blow::leave:
        take_ends(victim());
        workers_[victim()].gone = true;
        cluster_.leave(trainer(victim()), drawn_.blow == Blow::death
                                              ? dataplane::Departure::death
                                              : dataplane::Departure::orderly);
        return;
      case Blow::disagreement:
        for (std::size_t i = 0; i < workers_.size(); ++i) {
          trainer(i).submit(shared::kHeapOffset, i == victim() ? 8 : kShortest,
                            aggregation::DataType::float32, aggregation::Operation::sum);
        }
        return;
      case Blow::node_death:
        for (std::size_t i = 0; i < workers_.size(); ++i) {
          if (trainer(i).server() != server) continue;
          take_ends(i);
          workers_[i].gone = true;
        }
        struck_ = server;
        cluster_.kill(server);
        return;
      case Blow::node_pause:
        still_ = server;
        cluster_.stop(server);
        break;
      case Blow::cut_off:
        cluster_.cut_off(server, true);
        break;
    }
    over_at_ = cluster_.now() + drawn_.lasts;
  }

  void end_blow() {
    over_at_ = dataplane::kNever;
    if (drawn_.blow == Blow::node_pause) cluster_.go_on(*std::exchange(still_, std::nullopt));
    if (drawn_.blow == Blow::cut_off) cluster_.mend();
  }

  // Of trainers that stay, and of those whose daemon is gone: these have the memory alone.
  void check_all() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const bool has_lost_its_daemon = struck_ == trainer(i).server();
      if (workers_[i].gone && !has_lost_its_daemon) continue;
      for (std::uint32_t key = 0; key < drawn_.keys.size(); ++key)
        check(i, key, "when all is over");
      const shared::HubHeader state = job_.state(trainer(i));
      if (state.readable == 0) complain(fmt::format("the memory of rank {} was taken back", i));
      if (workers_[i].stopped && !has_lost_its_daemon && state.end_code == 0) {
        complain(fmt::format("a push of rank {} has failed, and its hub is there", i));
      }
      if (drawn_.blow == Blow::none && (workers_[i].stopped || state.end_code != 0)) {
        complain(fmt::format("the hub of rank {} has ended with {}", i, state.end_code));
      }
    }
  }

  void leave_all() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].gone) cluster_.leave(trainer(i), dataplane::Departure::orderly);
    }
    const bool drained = cluster_.run_until(
        [this] { return cluster_.idle() && cluster_.packets_in_use() == 0; }, 30 * kSecond);
    if (!drained) complain("packets have leaked, or a node keeps a job");
  }

  Draw drawn_;
  SimulatedCluster cluster_;
  HubJob job_;
  dataplane::SeededRandom random_;
  std::vector<Worker> workers_;  // by rank, as the job's trainers
  std::map<std::pair<std::uint32_t, unsigned>, std::vector<float>> expected_;
  std::map<std::pair<std::uint32_t, unsigned>, double> squares_;
  std::int64_t strikes_at_ = dataplane::kNever;
  std::int64_t over_at_ = dataplane::kNever;
  std::optional<bcube::ServerId> struck_;
  std::optional<bcube::ServerId> still_;
  Outcome outcome_;
};

}  // namespace

Outcome play_hub(std::uint64_t seed) { return HubRun(seed).play(); }

}  // namespace gradcube::simulation
