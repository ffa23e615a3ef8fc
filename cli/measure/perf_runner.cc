#include "cli/measure/perf_runner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "aggregation/reproducible.h"
#include "cli/cluster/interrupt.h"
#include "cli/measure/cancellable_barrier.h"
#include "cli/measure/oracle.h"
#include "cli/measure/perf_collective.h"
#include "cli/measure/perf_inputs.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using control::CollectiveKind;
using Clock = std::chrono::steady_clock;

// How often a trainer that waits looks whether it should stop waiting.
constexpr auto kWaitSlice = std::chrono::milliseconds(200);

// Words, since the element type is known only at run time.
using Memory = Buffer<std::int64_t>;

// Every iteration, and each of its collectives, has inputs of its own: a result left over from the
// one before is wrong.
std::uint64_t seed_of(unsigned iteration, unsigned collective) {
  return std::uint64_t{iteration} << 16 | collective;
}

// One row: what its threads share, and what each of them does.
class Row {
 public:
  Row(const control::Plan& plan, const PerfSettings& settings,
      const std::vector<control::Rank>& ranks, std::vector<Session>& sessions, std::uint64_t count,
      std::atomic<unsigned>& iterations_done)
      : settings_(settings),
        ranks_(ranks),
        sessions_(sessions),
        all_ranks_(plan.placement().trainers()),
        count_(count),
        element_bytes_(aggregation::element_bytes(settings.type)),
        oracle_(plan, {settings.kind, settings.type, settings.operation, count, settings.root,
                       nullptr, settings.reproducible}),
        trainers_(static_cast<unsigned>(sessions.size())),
        barrier_(trainers_),
        starts_(trainers_),
        ends_(trainers_),
        buffers_(trainers_),
        iterations_done_(iterations_done) {}

  PerfRow measure() {
    {
      std::vector<std::jthread> threads;
      for (unsigned trainer = 0; trainer < trainers_; ++trainer) {
        threads.emplace_back([this, trainer] { guarded_work(trainer); });
      }
    }
    if (error_) std::rethrow_exception(error_);
    PerfRow row{.kind = settings_.kind,
                .count = count_,
                .type = settings_.type,
                .operation = settings_.operation,
                .carried_bytes = carried_bytes(settings_, all_ranks_),
                .in_flight = settings_.in_flight,
                .seconds = std::move(seconds_),
                .wrong = std::nullopt,
                .resent = std::nullopt};
    if (settings_.check) row.wrong = wrong_.load();
    return row;
  }

 private:
  void guarded_work(unsigned trainer) {
    try {
      work(trainer);
    } catch (...) {
      const std::scoped_lock lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
      barrier_.cancel();
    }
  }

  void work(unsigned trainer) {
    const std::size_t words = (count_ * element_bytes_ + 7) / 8;
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      buffers_[trainer].push_back(sessions_[trainer].buffer<std::int64_t>(words));
    }
    for (unsigned iteration = 0; iteration < settings_.warmup + settings_.iterations; ++iteration) {
      throw_if_interrupted();  // short iterations never get to where wait() looks
      for (unsigned i = 0; i < settings_.in_flight; ++i) {
        fill_input(settings_.type, settings_.operation, seed_of(iteration, i), ranks_[trainer], 0,
                   count_, buffers_[trainer][i].data());
      }
      if (trainers_ < all_ranks_) meet_others(trainer);
      if (!barrier_.arrive_and_wait()) return;
      run(trainer);
      if (!barrier_.arrive_and_wait()) return;
      if (trainer == 0 && iteration >= settings_.warmup) note_time();
      if (trainer == 0) iterations_done_ = iteration + 1;
      if (settings_.check) check(trainer, iteration);
      if (!barrier_.arrive_and_wait()) return;
    }
  }

  void run(unsigned trainer) {
    gradcube_session* session = sessions_[trainer].handle();
    std::vector<std::uint64_t> requests(settings_.in_flight);
    gradcube_collective collective = this->collective();
    starts_[trainer] = Clock::now();
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      collective.buffer = buffers_[trainer][i].data();
      detail::check(gradcube_submit(session, &collective, &requests[i]), session);
    }
    const Clock::time_point deadline = starts_[trainer] + settings_.timeout;
    for (const std::uint64_t request : requests) wait(session, request, deadline);
    ends_[trainer] = Clock::now();
  }

  // The trainers of other processes.
  void meet_others(unsigned trainer) {
    gradcube_session* session = sessions_[trainer].handle();
    gradcube_collective barrier = GRADCUBE_COLLECTIVE_INIT;
    barrier.kind = GRADCUBE_BARRIER;
    std::uint64_t request = 0;
    detail::check(gradcube_submit(session, &barrier, &request), session);
    wait(session, request, Clock::now() + settings_.timeout);
  }

  // All but its buffer.
  gradcube_collective collective() const {
    gradcube_collective collective = GRADCUBE_COLLECTIVE_INIT;
    collective.kind = static_cast<int>(settings_.kind);
    collective.count = control::is_rank_ordered(settings_.kind) ? count_ / all_ranks_ : count_;
    collective.dtype = static_cast<int>(settings_.type);
    collective.op = static_cast<int>(settings_.operation);
    collective.root = settings_.root;
    return collective;
  }

  void wait(gradcube_session* session, std::uint64_t request, Clock::time_point deadline) {
    for (;;) {
      int done = 0;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      const auto slice =
          std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds(0), kWaitSlice);
      detail::check(gradcube_poll(session, request, static_cast<int>(slice.count()), &done),
                    session);
      if (done != 0) return;
      throw_if_interrupted();
      if (barrier_.cancelled()) {
        throw control::SetupError("another trainer of this measurement failed");
      }
      if (left.count() <= 0) return time_out(session, request);
    }
  }

  // Throws, unless the request has ended by now.
  void time_out(gradcube_session* session, std::uint64_t request) {
    const int code = gradcube_wait(session, request, 0);  // which asks the daemon
    if (code != GRADCUBE_ETIMEDOUT) return detail::check(code, session);
    throw IterationTimeout(settings_.kind, count_ * element_bytes_, settings_.timeout,
                           cause_of_timeout(session));
  }

  static void throw_if_interrupted() {
    if (InterruptGuard::interrupted()) throw control::SetupError("interrupted");
  }

  void note_time() {
    const auto first = *std::min_element(starts_.begin(), starts_.end());
    const auto last = *std::max_element(ends_.begin(), ends_.end());
    seconds_.push_back(std::chrono::duration<double>(last - first).count());
  }

  void check(unsigned trainer, unsigned iteration) {
    if (settings_.kind == CollectiveKind::barrier) {
      const auto last = *std::max_element(starts_.begin(), starts_.end());
      if (ends_[trainer] < last) ++wrong_;
      return;
    }
    for (unsigned i = 0; i < settings_.in_flight; ++i) check(trainer, iteration, i);
  }

  // Of one collective: a trainer's chunk, or its share of the elements, in the buffers that have
  // them.
  void check(unsigned trainer, unsigned iteration, unsigned i) {
    const bool own = settings_.kind == CollectiveKind::reduce_scatter;
    const bool rooted = settings_.kind == CollectiveKind::reduce;
    const std::size_t begin = own ? 0 : count_ * trainer / trainers_;
    const std::size_t end = own ? count_ : count_ * (trainer + 1) / trainers_;
    const control::Rank rank = own ? ranks_[trainer] : rooted ? settings_.root : 0;
    const auto has_result = [&](unsigned buffer) {
      return own ? buffer == trainer : !rooted || ranks_[buffer] == settings_.root;
    };
    const auto contribution = [&](std::uint32_t from, std::size_t first, std::size_t length,
                                  void* out) {
      fill_input(settings_.type, settings_.operation, seed_of(iteration, i), from, first, length,
                 out);
    };
    oracle_.for_each_block(rank, begin, end, contribution,
                           [&](std::size_t first, std::size_t length, const void* expected) {
                             for (unsigned buffer = 0; buffer < trainers_; ++buffer) {
                               if (!has_result(buffer)) continue;
                               const auto* found =
                                   reinterpret_cast<const std::byte*>(buffers_[buffer][i].data()) +
                                   first * element_bytes_;
                               wrong_ += count_wrong(settings_.type, expected, found, length);
                             }
                           });
  }

  const PerfSettings& settings_;
  const std::vector<control::Rank>& ranks_;  // that are here
  std::vector<Session>& sessions_;
  const std::uint32_t all_ranks_;
  const std::uint64_t count_;
  const std::size_t element_bytes_;
  const Oracle oracle_;
  const unsigned trainers_;
  CancellableBarrier barrier_;
  std::vector<Clock::time_point> starts_;
  std::vector<Clock::time_point> ends_;
  std::vector<std::vector<Memory>> buffers_;
  std::vector<double> seconds_;
  std::atomic<unsigned>& iterations_done_;
  std::atomic<std::uint64_t> wrong_{0};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace

std::size_t carried_bytes(const PerfSettings& settings, control::Rank ranks) {
  if (!settings.reproducible || !control::reduces(settings.kind)) {
    return aggregation::element_bytes(settings.type);
  }
  const auto carrier = aggregation::carrier_of({settings.type, settings.operation, ranks});
  return carrier.has_value() ? aggregation::element_bytes(carrier->type) : 0;
}

std::string cause_of_timeout(gradcube_session* session) {
  constexpr std::string_view kBeforeCause = " ms: ";
  const std::string_view text = gradcube_last_error(session);
  const std::size_t at = text.find(kBeforeCause);
  return at == std::string_view::npos ? "" : std::string(text.substr(at + kBeforeCause.size()));
}

IterationTimeout::IterationTimeout(CollectiveKind kind, std::uint64_t bytes,
                                   std::chrono::milliseconds timeout, std::string cause)
    : control::SetupError(fmt::format("{} of {} bytes is not done after {:g} s (--timeout)",
                                      with_article(kind), bytes,
                                      std::chrono::duration<double>(timeout).count())),
      cause_(std::move(cause)) {}

void require_rank(const Session& session, const PerfTrainer& trainer, std::uint32_t all,
                  const std::string& job) {
  if (session.size() == static_cast<int>(all) && session.rank() == static_cast<int>(trainer.rank)) {
    return;
  }
  throw control::SetupError(
      fmt::format("the daemon at {} made this trainer number {} of {}; expected number {} of {}: "
                  "does another trainer use the job {}?",
                  trainer.socket, session.rank(), session.size(), trainer.rank, all, job));
}

PerfRunner::PerfRunner(const control::PlanChoice& choice, const std::vector<PerfTrainer>& trainers,
                       const std::string& job, const PerfSettings& settings)
    : choice_(choice), settings_(settings) {
  Options options;
  options.algorithm = settings.algorithm;
  options.reproducible = settings.reproducible;
  options.members.assign(settings.members.begin(), settings.members.end());
  options.trainers_per_server = settings.trainers;
  const std::uint32_t all = choice.placement().trainers();
  for (const PerfTrainer& trainer : trainers) {
    ranks_.push_back(trainer.rank);
    options.local = static_cast<int>(trainer.local);
    sessions_.emplace_back(job, trainer.socket, options);
    require_rank(sessions_.back(), trainer, all, job);
  }
}

PerfRow PerfRunner::run(std::uint64_t count) {
  const std::uint64_t bytes = count * carried_bytes(settings_, choice_.placement().trainers());
  iterations_done_ = 0;
  return Row(choice_.plan_of(settings_.kind, bytes), settings_, ranks_, sessions_, count,
             iterations_done_)
      .measure();
}

}  // namespace gradcube::cli
