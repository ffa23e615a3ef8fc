#include "cli/measure/measure_collective.h"

#include <atomic>
#include <fmt/format.h>
#include <vector>

#include "aggregation/reproducible.h"
#include "cli/measure/oracle.h"
#include "cli/measure/perf_collective.h"
#include "cli/measure/perf_inputs.h"

namespace gradcube::cli {
namespace {

using control::CollectiveKind;

// Words, since the element type is known only at run time.
using Memory = Buffer<std::int64_t>;

// One row: what its threads share, and what each of them does.
class Row {
 public:
  Row(const control::Plan& plan, const PerfSettings& settings, Harness& harness,
      std::uint64_t count)
      : settings_(settings),
        harness_(harness),
        count_(count),
        element_bytes_(aggregation::element_bytes(settings.type)),
        oracle_(plan, {settings.kind, settings.type, settings.operation, count, settings.root,
                       nullptr, settings.reproducible}),
        trainers_(harness.trainers()),
        buffers_(trainers_),
        work_(trainers_) {}

  PerfRow measure() {
    harness_.measures(
        fmt::format("{} of {} bytes", with_article(settings_.kind), count_ * element_bytes_));
    harness_.run([this](unsigned trainer) { work(trainer); });
    PerfRow row{
        .kind = settings_.kind,
        .count = count_,
        .type = settings_.type,
        .operation = settings_.operation,
        .carried_bytes = carried_bytes(settings_, harness_.all_ranks()),
        .in_flight = settings_.in_flight,
        .seconds = harness_.row_seconds(),
        .operations = std::uint64_t{settings_.warmup + settings_.iterations} * settings_.in_flight};
    if (settings_.check) row.wrong = wrong_.load();
    if (settings_.counts_work) {
      row.work.emplace();
      for (const WorkCounts& each : work_) *row.work += each;
    }
    return row;
  }

 private:
  void work(unsigned trainer) {
    const std::size_t words = (count_ * element_bytes_ + 7) / 8;
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      buffers_[trainer].push_back(harness_.session(trainer).buffer<std::int64_t>(words));
    }
    harness_.iterate(trainer, {.prepare = [&](unsigned iteration) { fill(trainer, iteration); },
                               .timed = [&](unsigned) { run(trainer); },
                               .check = [&](unsigned iteration) { check(trainer, iteration); }});
  }

  void fill(unsigned trainer, unsigned iteration) {
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      fill_input(settings_.type, settings_.operation, seed_of(iteration, i), harness_.rank(trainer),
                 0, count_, buffers_[trainer][i].data());
    }
  }

  void run(unsigned trainer) {
    const WorkCounts before = settings_.counts_work ? work_of_this_thread() : WorkCounts{};
    std::vector<std::uint64_t> requests(settings_.in_flight);
    gradcube_collective collective = this->collective();
    harness_.start(trainer);
    const auto deadline = harness_.deadline();
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      collective.buffer = buffers_[trainer][i].data();
      harness_.require(trainer,
                       gradcube_submit(harness_.handle(trainer), &collective, &requests[i]));
    }
    for (const std::uint64_t request : requests) harness_.wait(trainer, request, deadline);
    harness_.end(trainer);
    if (!settings_.counts_work) return;
    work_[trainer] += work_of_this_thread().since(before).value_or(WorkCounts{});
  }

  // All but its buffer.
  gradcube_collective collective() const {
    gradcube_collective collective = GRADCUBE_COLLECTIVE_INIT;
    collective.kind = static_cast<int>(settings_.kind);
    collective.count =
        control::is_rank_ordered(settings_.kind) ? count_ / harness_.all_ranks() : count_;
    collective.dtype = static_cast<int>(settings_.type);
    collective.op = static_cast<int>(settings_.operation);
    collective.root = settings_.root;
    return collective;
  }

  void check(unsigned trainer, unsigned iteration) {
    if (settings_.kind == CollectiveKind::barrier) {
      if (harness_.ended_early(trainer)) ++wrong_;
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
    const control::Rank rank = own ? harness_.rank(trainer) : rooted ? settings_.root : 0;
    const auto has_result = [&](unsigned buffer) {
      return own ? buffer == trainer : !rooted || harness_.rank(buffer) == settings_.root;
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
  Harness& harness_;
  const std::uint64_t count_;
  const std::size_t element_bytes_;
  const Oracle oracle_;
  const unsigned trainers_;
  std::vector<std::vector<Memory>> buffers_;
  std::vector<WorkCounts> work_;  // by trainer: each writes its own
  std::atomic<std::uint64_t> wrong_{0};
};

}  // namespace

std::size_t carried_bytes(const PerfSettings& settings, control::Rank ranks) {
  if (!settings.reproducible || !control::reduces(settings.kind)) {
    return aggregation::element_bytes(settings.type);
  }
  const auto carrier = aggregation::carrier_of({settings.type, settings.operation, ranks});
  return carrier.has_value() ? aggregation::element_bytes(carrier->type) : 0;
}

PerfRow measure_collective(Harness& harness, const control::PlanChoice& choice,
                           const PerfSettings& settings, std::uint64_t count) {
  const std::uint64_t bytes = count * carried_bytes(settings, harness.all_ranks());
  return Row(choice.plan_of(settings.kind, bytes), settings, harness, count).measure();
}

}  // namespace gradcube::cli
