// Iterations of a training that computes nothing (PHub, section 4.4: "ZeroCompute"):
//
//   hub_rounds JOB HOW OPTIMIZER CHUNK ALGORITHM ROUNDS KEYS SOCKET...
//
// A trainer on every SOCKET, all driven by one thread, exchanges the keys of KEYS (elements of
// float32, "9408,64,64") ROUNDS times: HOW is
//
//   push_pull   every key is pushed, and the new weights are copied to the trainer
//   push        the weights stay where they are
//   then_pull   as push, and when all have ended the weights of all keys are pulled
//   in_turn     as push_pull, but the keys of every trainer in another order
//   all_reduce  every key by a collective, and nothing is stepped: what the exchange costs
//
// Prints one JSON object: the median of the iterations' seconds and all of them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/hub/parse_keys.h"

#include "gradcube/gradcube_hub.h"

namespace gradcube::bench {
namespace {

constexpr int kPatience = 120'000;  // milliseconds

struct Settings {
  std::string job;
  std::string how;
  std::string optimizer;
  std::size_t chunk_bytes = 0;
  std::string algorithm;
  std::size_t rounds = 0;
  std::vector<std::size_t> keys;  // elements
};

class Trainer {
 public:
  Trainer(const Settings& settings, const std::string& socket, std::size_t number)
      : settings_(settings) {
    gradcube_options options = GRADCUBE_OPTIONS_INIT;
    if (settings.algorithm != "default") options.algorithm = settings.algorithm.c_str();
    if (gradcube_open(socket.c_str(), settings.job.c_str(), &options, &session_) != 0) {
      throw std::runtime_error(gradcube_last_error(nullptr));
    }
    for (const std::size_t elements : settings.keys) {
      gradients_.push_back(zeros(elements));
      weights_.push_back(zeros(elements));
      names_.push_back("key" + std::to_string(names_.size()));
    }
    order_.resize(settings.keys.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (settings.how == "in_turn") {
      std::rotate(order_.begin(),
                  order_.begin() + static_cast<std::ptrdiff_t>(number * 7 % order_.size()),
                  order_.end());
    }
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() {
    gradcube_hub_free(hub_, 0);
    gradcube_close(session_);
  }

  bool uses_hub() const { return settings_.how != "all_reduce"; }

  // On a thread of its own: all trainers wait for each other.
  void make_hub() {
    std::vector<gradcube_hub_key> keys;
    for (std::size_t i = 0; i < settings_.keys.size(); ++i) {
      keys.push_back({names_[i].c_str(), settings_.keys[i], GRADCUBE_FLOAT32});
    }
    gradcube_hub_settings settings = GRADCUBE_HUB_SETTINGS_INIT;
    settings.keys = keys.data();
    settings.key_count = keys.size();
    settings.optimizer = settings_.optimizer.c_str();
    settings.chunk_bytes = settings_.chunk_bytes;
    check(gradcube_hub_create(session_, &settings, kPatience, &hub_));
  }

  void begin_weights() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      check(gradcube_hub_init(hub_, i, weights_[i], &requests_.emplace_back()));
    }
  }
  void begin() {
    for (const std::size_t i : order_) {
      std::uint64_t& request = requests_.emplace_back();
      if (!uses_hub()) {
        check(gradcube_allreduce(session_, gradients_[i], settings_.keys[i], GRADCUBE_FLOAT32,
                                 GRADCUBE_AVERAGE, &request));
      } else if (settings_.how == "push" || settings_.how == "then_pull") {
        check(gradcube_hub_push(hub_, i, gradients_[i], GRADCUBE_HUB_RATE, &request));
      } else {
        check(gradcube_hub_push_pull(hub_, i, gradients_[i], weights_[i], GRADCUBE_HUB_RATE,
                                     &request));
      }
    }
  }
  void end() {
    for (const std::uint64_t request : requests_) {
      check(gradcube_wait(session_, request, kPatience));
    }
    requests_.clear();
  }
  void pull() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      check(gradcube_hub_pull(hub_, i, weights_[i]));
    }
  }

 private:
  float* zeros(std::size_t elements) {
    void* memory = gradcube_alloc(session_, elements * sizeof(float));
    if (memory == nullptr) throw std::runtime_error(gradcube_last_error(session_));
    std::memset(memory, 0, elements * sizeof(float));
    return static_cast<float*>(memory);
  }
  void check(int code) const {
    if (code != GRADCUBE_OK) throw std::runtime_error(gradcube_last_error(session_));
  }

  const Settings& settings_;
  gradcube_session* session_ = nullptr;
  gradcube_hub* hub_ = nullptr;
  std::vector<float*> gradients_;
  std::vector<float*> weights_;
  std::vector<std::string> names_;
  std::vector<std::size_t> order_;
  std::vector<std::uint64_t> requests_;
};

// Each on a thread of its own, because it waits for the others.
void make_hub(std::deque<Trainer>& trainers) {
  std::vector<std::exception_ptr> failures(trainers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        trainers[i].make_hub();
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (Trainer& trainer : trainers) trainer.begin_weights();
  for (Trainer& trainer : trainers) trainer.end();
}

int run(std::span<const std::string> arguments) {
  if (arguments.size() < 8) {
    std::fprintf(stderr,
                 "usage: hub_rounds JOB HOW OPTIMIZER CHUNK ALGORITHM ROUNDS KEYS SOCKET...\n");
    return 2;
  }
  Settings settings;
  settings.job = arguments[0];
  settings.how = arguments[1];
  settings.optimizer = arguments[2];
  settings.chunk_bytes = std::stoul(arguments[3]);
  settings.algorithm = arguments[4];
  settings.rounds = std::stoul(arguments[5]);
  settings.keys = parse_keys(arguments[6]);
  const std::vector<std::string> known = {"push_pull", "push", "then_pull", "in_turn",
                                          "all_reduce"};
  if (std::find(known.begin(), known.end(), settings.how) == known.end()) {
    throw std::invalid_argument("HOW: expected push_pull, push, then_pull, in_turn or all_reduce");
  }
  std::deque<Trainer> trainers;
  for (const std::string& socket : arguments.subspan(7)) {
    trainers.emplace_back(settings, socket, trainers.size());
  }
  if (trainers.front().uses_hub()) make_hub(trainers);
  std::vector<double> seconds;
  for (std::size_t round = 0; round < settings.rounds + 1; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (Trainer& trainer : trainers) trainer.begin();
    for (Trainer& trainer : trainers) trainer.end();
    if (settings.how == "then_pull") {
      for (Trainer& trainer : trainers) trainer.pull();
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (round != 0) seconds.push_back(passed.count());  // the first is no steady state
  }
  std::string all;
  for (const double each : seconds) all += (all.empty() ? "" : ",") + std::to_string(each);
  std::nth_element(seconds.begin(),
                   seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  std::printf("{\"seconds_median\":%.9f,\"seconds\":[%s]}\n", seconds[seconds.size() / 2],
              all.c_str());
  return 0;
}

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return gradcube::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hub_rounds: %s\n", error.what());
    return 1;
  }
}
