#include "cli/measure/harness.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "cli/cluster/interrupt.h"

namespace gradcube::cli {
namespace {

// How often a trainer that waits looks whether it should stop waiting.
constexpr std::chrono::milliseconds kWaitSlice{200};

}  // namespace

std::jthread start_thread(std::function<void()> work) {
  try {
    return std::jthread(std::move(work));
  } catch (const std::system_error& error) {
    throw control::SetupError(
        fmt::format("cannot start a thread: {}: raise what this user or container may have of "
                    "processes (ulimit -u, pids.max) and of memory (ulimit -v)",
                    error.code().message()));
  }
}

Harness::Harness(const std::vector<PerfTrainer>& trainers, std::uint32_t all_ranks,
                 const std::string& job, const JobSettings& settings)
    : all_ranks_(all_ranks), settings_(settings), starts_(trainers.size()), ends_(trainers.size()) {
  Options options;
  options.algorithm = settings.algorithm;
  options.reproducible = settings.reproducible;
  options.members.assign(settings.members.begin(), settings.members.end());
  options.trainers_per_server = settings.trainers;
  for (const PerfTrainer& trainer : trainers) {
    ranks_.push_back(trainer.rank);
    options.local = static_cast<int>(trainer.local);
    const Session& session = sessions_.emplace_back(job, trainer.socket, options);
    if (session.size() == static_cast<int>(all_ranks) &&
        session.rank() == static_cast<int>(trainer.rank)) {
      continue;
    }
    throw control::SetupError(fmt::format(
        "the daemon at {} made this trainer number {} of {}; expected number {} of {}: does "
        "another trainer use the job {}?",
        trainer.socket, session.rank(), session.size(), trainer.rank, all_ranks, job));
  }
}

void Harness::measures(std::string what) {
  what_ = std::move(what);
  iterations_done_ = 0;
  row_seconds_.clear();
}

void Harness::run(const std::function<void(unsigned)>& work,
                  const std::function<void(unsigned)>& end) {
  meeting_.emplace(trainers());
  {
    std::vector<std::jthread> threads;
    try {
      while (threads.size() < trainers()) {
        threads.push_back(start_thread([&, trainer = static_cast<unsigned>(threads.size())] {
          guarded(trainer, work);
          meeting_->arrive_and_drop();  // nobody waits for it any more
          guarded(trainer, end);
        }));
      }
    } catch (...) {
      fail(std::current_exception());
      for (auto i = threads.size(); i < trainers(); ++i) meeting_->arrive_and_drop();
    }
  }
  if (error_) std::rethrow_exception(error_);
}

void Harness::guarded(unsigned trainer, const std::function<void(unsigned)>& work) {
  try {
    work(trainer);
  } catch (...) {
    fail(std::current_exception());
  }
}

void Harness::fail(std::exception_ptr error) {
  const std::scoped_lock lock(error_mutex_);
  if (!error_) error_ = std::move(error);
  failed_ = true;
}

bool Harness::meet() {
  if (!failed_) meeting_->arrive_and_wait();
  return !failed_;
}

void Harness::iterate(unsigned trainer, const IterationParts& parts) {
  for (unsigned iteration = 0; iteration < settings_.warmup + settings_.iterations; ++iteration) {
    look_up();  // short iterations never get to where wait() does
    parts.prepare(iteration);
    if (trainers() < all_ranks_) meet_job(trainer);
    if (!meet()) return;
    parts.timed(iteration);
    if (!meet()) return;
    if (trainer == 0) {
      if (iteration >= settings_.warmup) row_seconds_.push_back(seconds());
      iterations_done_ = iteration + 1;
    }
    if (settings_.check) parts.check(iteration);
    if (!meet()) return;
  }
}

void Harness::meet_job(unsigned trainer) const {
  gradcube_collective barrier = GRADCUBE_COLLECTIVE_INIT;
  barrier.kind = GRADCUBE_BARRIER;
  std::uint64_t request = 0;
  require(trainer, gradcube_submit(handle(trainer), &barrier, &request));
  wait(trainer, request, deadline());
}

void Harness::wait(unsigned trainer, std::uint64_t request, Clock::time_point until) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    const auto slice = std::clamp(left, std::chrono::milliseconds(0), kWaitSlice);
    int done = 0;
    require(trainer,
            gradcube_poll(handle(trainer), request, static_cast<int>(slice.count()), &done));
    if (done != 0) return;
    look_up();
    if (left.count() <= 0) break;
  }
  const int code = gradcube_wait(handle(trainer), request, 0);    // which asks the daemon
  if (code != GRADCUBE_ETIMEDOUT) return require(trainer, code);  // it may have ended by now
  throw IterationTimeout(fmt::format("{} is not done after {:g} s (--timeout): {}", what_,
                                     std::chrono::duration<double>(settings_.timeout).count(),
                                     gradcube_last_error(handle(trainer))));
}

void Harness::look_up() const {
  if (InterruptGuard::interrupted()) throw control::SetupError("interrupted");
  if (has_failed()) throw control::SetupError("another trainer of this measurement failed");
}

double Harness::seconds() const {
  const auto first = *std::min_element(starts_.begin(), starts_.end());
  const auto last = *std::max_element(ends_.begin(), ends_.end());
  return std::chrono::duration<double>(last - first).count();
}

bool Harness::ended_early(unsigned trainer) const {
  return ends_[trainer] < *std::max_element(starts_.begin(), starts_.end());
}

}  // namespace gradcube::cli
