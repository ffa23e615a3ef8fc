#include "cli/measure/measure_hub.h"

#include <algorithm>
#include <atomic>
#include <deque>

#include "cli/measure/hub_oracle.h"

namespace gradcube::cli {
namespace {

// Pushes of a trainer; a session holds 1,024 requests.
constexpr std::size_t kMostInFlight = 256;

gradcube_hub_settings settings_of(const HubRunSettings& settings, std::uint64_t chunk_bytes,
                                  const std::vector<gradcube_hub_key>& keys) {
  gradcube_hub_settings wanted = GRADCUBE_HUB_SETTINGS_INIT;
  wanted.keys = keys.data();
  wanted.key_count = keys.size();
  wanted.optimizer = settings.optimizer.c_str();
  wanted.chunk_bytes = chunk_bytes;
  if (!settings.aggregators.empty()) wanted.aggregators = settings.aggregators.data();
  wanted.aggregator_count = settings.aggregators.size();
  return wanted;
}

// One hub: what its threads share, and what each of them does.
class Measurement {
 public:
  Measurement(const HubRunSettings& settings, std::uint64_t chunk_bytes, Harness& harness,
              HubGradients& gradients)
      : settings_(settings),
        chunk_bytes_(chunk_bytes),
        harness_(harness),
        gradients_(gradients),
        trainers_(harness.trainers()) {
    if (settings.check) {
      oracle_.emplace(settings_.keys, settings_.optimizers.of_keys, harness.all_ranks());
    }
  }

  PerfRow measure() {
    harness_.measures("a round of the hub");
    harness_.run(
        [this](unsigned trainer) {
          make(trainer);
          harness_.iterate(trainer, {.prepare = [&](unsigned i) { fill(trainer, i + 1); },
                                     .timed = [&](unsigned) { exchange(trainer); },
                                     .check = [&](unsigned) { check(trainer); }});
          // gradcube_hub_free() waits for all, and looks at no signal meanwhile.
          if (!harness_.has_failed()) harness_.meet_job(trainer);
        },
        [this](unsigned trainer) {
          // After a failure the sessions are of no use. Without a job nobody is waited for.
          if (harness_.has_failed()) gradcube_leave(harness_.handle(trainer));
          gradcube_hub_free(hubs_[trainer], harness_.milliseconds());
        });
    PerfRow row;
    row.count = settings_.bytes();
    row.type = aggregation::DataType::bytes;
    row.seconds = harness_.row_seconds();
    if (settings_.check) row.wrong = wrong_.load();
    return row;
  }

 private:
  void require(unsigned trainer, int code) const { harness_.require(trainer, code); }

  // With its first weights.
  void make(unsigned trainer) {
    std::vector<gradcube_hub_key> keys;
    for (const control::HubKey& key : settings_.keys) {
      keys.push_back({key.name.c_str(), key.elements, static_cast<int>(key.type)});
    }
    const gradcube_hub_settings wanted = settings_of(settings_, chunk_bytes_, keys);
    // gradcube_hub_create() waits for all, and looks at no signal meanwhile.
    harness_.meet_job(trainer);
    require(trainer, gradcube_hub_create(harness_.handle(trainer), &wanted, harness_.milliseconds(),
                                         &hubs_[trainer]));
    each_key(trainer, [&](std::size_t k, std::uint64_t& request) {
      std::byte* const weights = gradients_[trainer][k].data();
      fill_weights(settings_.keys[k], static_cast<std::uint32_t>(k), weights);
      require(trainer, gradcube_hub_init(hubs_[trainer], k, weights, &request));
    });
  }

  void exchange(unsigned trainer) {
    harness_.start(trainer);
    each_key(trainer, [&](std::size_t k, std::uint64_t& request) {
      require(trainer, gradcube_hub_push(hubs_[trainer], k, gradients_[trainer][k].data(),
                                         GRADCUBE_HUB_RATE, &request));
    });
    harness_.end(trainer);
  }

  // Begins something with every key, and waits for all: as many at a time as a session holds.
  template <typename Begin>  // begin(key, request)
  void each_key(unsigned trainer, const Begin& begin) {
    const auto until = harness_.deadline();
    std::deque<std::uint64_t> requests;
    for (std::size_t k = 0; k < settings_.keys.size(); ++k) {
      if (requests.size() == kMostInFlight) {
        harness_.wait(trainer, requests.front(), until);
        requests.pop_front();
      }
      harness_.look_up();
      begin(k, requests.emplace_back());
    }
    for (const std::uint64_t request : requests) harness_.wait(trainer, request, until);
  }

  // Sums are made in what was pushed. Zeros stay zeros, so only a check needs gradients anew.
  void fill(unsigned trainer, std::uint64_t round) {
    for (std::uint32_t k = 0; k < settings_.keys.size(); ++k) {
      harness_.look_up();
      const control::HubKey& key = settings_.keys[k];
      std::byte* const gradients = gradients_[trainer][k].data();
      if (settings_.check) {
        fill_gradients(key, k, harness_.rank(trainer), round, gradients);
      } else if (round == 1) {
        std::fill_n(gradients, key.bytes(), std::byte{0});
      }
    }
  }

  // The trainers divide the keys. Each reads all hubs, which stay as they are until all have met.
  void check(unsigned trainer) {
    for (std::uint32_t k = trainer; k < settings_.keys.size(); k += trainers_) {
      oracle_->step(k);
      for (gradcube_hub* const each : hubs_) {
        wrong_ += oracle_->count_wrong(k, gradcube_hub_weights(each, k));
      }
    }
  }

  const HubRunSettings& settings_;
  const std::uint64_t chunk_bytes_;
  Harness& harness_;
  HubGradients& gradients_;
  const unsigned trainers_;
  std::vector<gradcube_hub*> hubs_ = std::vector<gradcube_hub*>(trainers_);
  std::optional<HubOracle> oracle_;
  std::atomic<std::uint64_t> wrong_{0};
};

}  // namespace

std::uint64_t HubRunSettings::bytes() const {
  std::uint64_t sum = 0;
  for (const control::HubKey& key : keys) sum += key.bytes();
  return sum;
}

HubGradients gradients_of(Harness& harness, const HubRunSettings& settings) {
  HubGradients gradients(harness.trainers());
  for (unsigned trainer = 0; trainer < harness.trainers(); ++trainer) {
    for (const control::HubKey& key : settings.keys) {
      gradients[trainer].push_back(harness.session(trainer).buffer<std::byte>(key.bytes()));
    }
  }
  return gradients;
}

PerfRow measure_hub(Harness& harness, const HubRunSettings& settings, HubGradients& gradients,
                    std::uint64_t chunk_bytes) {
  return Measurement(settings, chunk_bytes, harness, gradients).measure();
}

}  // namespace gradcube::cli
