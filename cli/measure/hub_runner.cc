#include "cli/measure/hub_runner.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <thread>

#include "cli/cluster/interrupt.h"
#include "cli/measure/cancellable_barrier.h"
#include "cli/measure/hub_oracle.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Gradients = std::vector<std::vector<Buffer<std::byte>>>;

// How often a trainer that waits looks whether it should stop waiting.
constexpr auto kLookEvery = std::chrono::milliseconds(200);
// Pushes of a trainer; a session holds 1,024 requests.
constexpr std::size_t kMostInFlight = 256;

gradcube_hub_settings settings_of(const HubRunSettings& settings, std::uint64_t chunk_bytes,
                                  const std::vector<gradcube_hub_key>& keys) {
  gradcube_hub_settings wanted = GRADCUBE_HUB_SETTINGS_INIT;
  wanted.keys = keys.data();
  wanted.key_count = keys.size();
  wanted.optimizer = settings.optimizer.c_str();
  wanted.chunk_bytes = chunk_bytes;
  if (settings.aggregator.has_value()) wanted.aggregator = *settings.aggregator;
  return wanted;
}

// One hub: what its threads share, and what each of them does.
class Measurement {
 public:
  Measurement(const HubRunSettings& settings, std::uint64_t chunk_bytes, std::uint32_t all_ranks,
              const std::vector<control::Rank>& ranks, std::vector<Session>& sessions,
              Gradients& gradients)
      : settings_(settings),
        chunk_bytes_(chunk_bytes),
        all_ranks_(all_ranks),
        ranks_(ranks),
        sessions_(sessions),
        gradients_(gradients),
        trainers_(static_cast<unsigned>(sessions.size())),
        barrier_(trainers_),
        starts_(trainers_),
        ends_(trainers_) {
    if (checks()) oracle_.emplace(settings.keys, settings.step, all_ranks);
  }

  HubTimes measure() {
    {
      std::vector<std::jthread> threads;
      for (unsigned trainer = 0; trainer < trainers_; ++trainer) {
        threads.emplace_back([this, trainer] { guarded_work(trainer); });
      }
    }
    if (error_) std::rethrow_exception(error_);
    HubTimes times{.seconds = std::move(seconds_), .wrong = std::nullopt};
    if (checks()) times.wrong = wrong_.load();
    return times;
  }

 private:
  bool checks() const { return settings_.check; }

  void guarded_work(unsigned trainer) {
    gradcube_hub* hub = nullptr;
    try {
      make(trainer, hub);
      work(trainer, hub);
      // gradcube_hub_free() waits for all, and looks at no signal meanwhile.
      if (!barrier_.cancelled()) meet_job(trainer);
    } catch (...) {
      const std::scoped_lock lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
      barrier_.cancel();
    }
    // After a failure the sessions are of no use. Without a job nobody is waited for.
    if (barrier_.cancelled()) gradcube_leave(session(trainer));
    gradcube_hub_free(hub, milliseconds());
  }

  int milliseconds() const { return static_cast<int>(settings_.timeout.count()); }
  gradcube_session* session(unsigned trainer) const { return sessions_[trainer].handle(); }
  void require(unsigned trainer, int code) const { detail::check(code, session(trainer)); }

  // With its first weights.
  void make(unsigned trainer, gradcube_hub*& hub) {
    std::vector<gradcube_hub_key> keys;
    for (const control::hub::HubKey& key : settings_.keys) {
      keys.push_back({key.name.c_str(), key.elements, static_cast<int>(key.type)});
    }
    const gradcube_hub_settings wanted = settings_of(settings_, chunk_bytes_, keys);
    meet_job(trainer);  // gradcube_hub_create() waits for all, and looks at no signal meanwhile
    require(trainer, gradcube_hub_create(session(trainer), &wanted, milliseconds(), &hub));
    each_key(trainer, [&](std::size_t k, std::uint64_t& request) {
      std::byte* const weights = gradients_[trainer][k].data();
      fill_weights(settings_.keys[k], static_cast<std::uint32_t>(k), weights);
      require(trainer, gradcube_hub_init(hub, k, weights, &request));
    });
  }

  void work(unsigned trainer, gradcube_hub* hub) {
    for (unsigned iteration = 0; iteration < settings_.warmup; ++iteration) {
      if (!iterate(trainer, hub, iteration, false)) return;
    }
    for (unsigned iteration = 0; iteration < settings_.iterations; ++iteration) {
      if (!iterate(trainer, hub, settings_.warmup + iteration, true)) return;
    }
  }

  // False: another trainer has failed.
  bool iterate(unsigned trainer, gradcube_hub* hub, unsigned iteration, bool noted) {
    fill(trainer, iteration + 1);
    if (!meet(trainer)) return false;
    starts_[trainer] = Clock::now();
    each_key(trainer,
             [&](std::size_t k, std::uint64_t& request) { push(trainer, hub, k, request); });
    ends_[trainer] = Clock::now();
    if (!barrier_.arrive_and_wait()) return false;
    if (trainer == 0 && noted) seconds_.push_back(passed());
    return !checks() || check(trainer, hub);
  }

  // Begins something with every key, and waits for all: as many at a time as a session holds.
  template <typename Begin>  // begin(key, request)
  void each_key(unsigned trainer, const Begin& begin) {
    const Clock::time_point until = deadline();
    std::deque<std::uint64_t> requests;
    for (std::size_t k = 0; k < settings_.keys.size(); ++k) {
      if (requests.size() == kMostInFlight) {
        wait(trainer, requests.front(), until);
        requests.pop_front();
      }
      look_up();
      begin(k, requests.emplace_back());
    }
    for (const std::uint64_t request : requests) wait(trainer, request, until);
  }

  // Sums are made in what was pushed. Zeros stay zeros, so only a check needs gradients anew.
  void fill(unsigned trainer, std::uint64_t round) {
    for (std::uint32_t k = 0; k < settings_.keys.size(); ++k) {
      look_up();
      const control::hub::HubKey& key = settings_.keys[k];
      std::byte* const gradients = gradients_[trainer][k].data();
      if (checks()) {
        fill_gradients(key, k, ranks_[trainer], round, gradients);
      } else if (round == 1) {
        std::fill_n(gradients, key.bytes(), std::byte{0});
      }
    }
  }

  // All trainers, those of other processes too.
  bool meet(unsigned trainer) {
    look_up();  // short iterations never get to where wait() does
    if (trainers_ < all_ranks_) meet_job(trainer);
    return barrier_.arrive_and_wait();
  }

  void meet_job(unsigned trainer) {
    gradcube_collective collective = GRADCUBE_COLLECTIVE_INIT;
    collective.kind = GRADCUBE_BARRIER;
    std::uint64_t request = 0;
    require(trainer, gradcube_submit(session(trainer), &collective, &request));
    wait(trainer, request, deadline());
  }

  void push(unsigned trainer, gradcube_hub* hub, std::size_t key, std::uint64_t& request) const {
    require(trainer, gradcube_hub_push(hub, key, gradients_[trainer][key].data(), GRADCUBE_HUB_RATE,
                                       &request));
  }

  Clock::time_point deadline() const { return Clock::now() + settings_.timeout; }

  void wait(unsigned trainer, std::uint64_t request, Clock::time_point until) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return time_out(trainer, request);
      int done = 0;
      const auto slice = std::min<std::chrono::milliseconds>(left, kLookEvery);
      require(trainer,
              gradcube_poll(session(trainer), request, static_cast<int>(slice.count()), &done));
      if (done != 0) return;
      look_up();
    }
  }

  // Throws, unless the request has ended by now.
  void time_out(unsigned trainer, std::uint64_t request) const {
    const int code = gradcube_wait(session(trainer), request, 0);  // which asks the daemon
    if (code != GRADCUBE_ETIMEDOUT) return require(trainer, code);
    const std::string cause = cause_of_timeout(session(trainer));
    throw control::SetupError(
        fmt::format("a round of the hub is not done after {:g} s (--timeout){}{}",
                    std::chrono::duration<double>(settings_.timeout).count(),
                    cause.empty() ? "" : "; ", cause));
  }

  void look_up() const {
    if (InterruptGuard::interrupted()) throw control::SetupError("interrupted");
    if (barrier_.cancelled()) {
      throw control::SetupError("another trainer of this measurement failed");
    }
  }

  double passed() const {
    const auto first = *std::min_element(starts_.begin(), starts_.end());
    const auto last = *std::max_element(ends_.begin(), ends_.end());
    return std::chrono::duration<double>(last - first).count();
  }

  // The trainers divide the keys. Each reads all hubs, which stay as they are until all have met.
  bool check(unsigned trainer, gradcube_hub* hub) {
    hubs_[trainer] = hub;
    if (!barrier_.arrive_and_wait()) return false;
    for (std::uint32_t k = trainer; k < settings_.keys.size(); k += trainers_) {
      oracle_->step(k);
      for (gradcube_hub* const each : hubs_) {
        wrong_ += oracle_->count_wrong(k, gradcube_hub_weights(each, k));
      }
    }
    return barrier_.arrive_and_wait();
  }

  const HubRunSettings& settings_;
  const std::uint64_t chunk_bytes_;
  const std::uint32_t all_ranks_;
  const std::vector<control::Rank>& ranks_;  // that are here
  std::vector<Session>& sessions_;
  Gradients& gradients_;
  const unsigned trainers_;
  CancellableBarrier barrier_;
  std::vector<Clock::time_point> starts_;
  std::vector<Clock::time_point> ends_;
  std::vector<gradcube_hub*> hubs_ = std::vector<gradcube_hub*>(trainers_);
  std::optional<HubOracle> oracle_;
  std::vector<double> seconds_;
  std::atomic<std::uint64_t> wrong_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace

std::uint64_t HubRunSettings::bytes() const {
  std::uint64_t sum = 0;
  for (const control::hub::HubKey& key : keys) sum += key.bytes();
  return sum;
}

HubRunner::HubRunner(const control::Placement& placement, const std::vector<PerfTrainer>& trainers,
                     const std::string& job, const HubRunSettings& settings)
    : settings_(settings), all_ranks_(placement.trainers()) {
  Options options;
  options.algorithm = settings.algorithm;
  options.members.assign(settings.members.begin(), settings.members.end());
  options.trainers_per_server = settings.trainers;
  for (const PerfTrainer& trainer : trainers) {
    ranks_.push_back(trainer.rank);
    options.local = static_cast<int>(trainer.local);
    sessions_.emplace_back(job, trainer.socket, options);
    require_rank(sessions_.back(), trainer, all_ranks_, job);
  }
}

HubTimes HubRunner::run(std::uint64_t chunk_bytes) {
  for (Session& session : sessions_) {
    if (gradients_.size() == sessions_.size()) break;
    std::vector<Buffer<std::byte>>& its = gradients_.emplace_back();
    for (const control::hub::HubKey& key : settings_.keys) {
      its.push_back(session.buffer<std::byte>(key.bytes()));
    }
  }
  return Measurement(settings_, chunk_bytes, all_ranks_, ranks_, sessions_, gradients_).measure();
}

}  // namespace gradcube::cli
