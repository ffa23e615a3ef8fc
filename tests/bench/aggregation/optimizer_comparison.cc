#include "tests/bench/aggregation/optimizer_comparison.h"

#include <limits>

#include "aggregation/optimizer.h"

namespace gradcube::aggregation::bench {
namespace {

constexpr std::size_t kSources = 2;

// Arrays that follow one another in windows, so that none that lies beyond the caches is in them
// when it is due. Zeros stay zeros.
struct Windows {
  Windows(OptimizerRule rule, std::size_t total_bytes) {
    constexpr std::size_t kMostWindowBytes = std::size_t{16} << 20;
    const std::size_t array_count = kSources + 1 + optimizer_states(rule);
    windows = (total_bytes + kMostWindowBytes - 1) / kMostWindowBytes;
    count = total_bytes / windows / array_count / sizeof(float) / 64 * 64;
    repeats = windows > 1 ? 1 : kMostWindowBytes / total_bytes;
    for (std::size_t a = 0; a < array_count; ++a) {
      arrays.push_back(make_memory(windows * count * sizeof(float)));
    }
  }
  float* at(std::size_t array, std::size_t window) const {
    if (array >= arrays.size()) return nullptr;
    return reinterpret_cast<float*>(arrays[array].get()) + window * count;
  }

  std::size_t windows;
  std::size_t count;
  std::size_t repeats;
  std::vector<Memory> arrays;
};

}  // namespace

Comparison compare_optimizer(OptimizerRule rule, std::size_t total_bytes,
                             const std::string& place) {
  constexpr std::size_t kSamples = 400;
  const Windows all(rule, total_bytes);
  OptimizerSettings settings;
  settings.rule = rule;
  settings.momentum = 0.9;
  const OptimizerStep step = optimizer_step(settings, 0.01, 2, 1);
  const unsigned widest = std::numeric_limits<unsigned>::max();
  const ReduceFunction reduce = select_kernels(widest).reduce(DataType::float32, Operation::sum);
  const OptimizeFunction optimize =
      select_kernels(widest).optimizers.optimize(DataType::float32, optimizer_form(settings, 1));
  std::vector<double> fused_seconds;
  std::vector<double> apart_seconds;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const std::size_t window = sample % all.windows;
    float* const sum = all.at(0, window);
    const void* sources[kSources] = {sum, all.at(1, window)};
    const OptimizerArrays arrays = {all.at(kSources, window), all.at(kSources + 1, window),
                                    all.at(kSources + 2, window), nullptr};
    // The sides take turns, and each takes every window.
    const bool fused_turn = (window + sample / all.windows) % 2 == 0;
    const double begin = thread_seconds();
    for (std::size_t i = 0; i < all.repeats; ++i) {
      if (fused_turn) {
        optimize(arrays, sources, kSources, all.count, step);
      } else {
        reduce(sum, sources, kSources, all.count);
        optimize(arrays, sources, 1, all.count, step);
      }
    }
    (fused_turn ? fused_seconds : apart_seconds).push_back(thread_seconds() - begin);
  }
  const double fused = median(fused_seconds);
  const double apart = median(apart_seconds);
  const std::size_t passes = kSources + 2 * (1 + optimizer_states(rule));
  const double gigabytes =
      static_cast<double>(passes * all.count * sizeof(float) * all.repeats) / 1e9;
  return {"last addition and " + std::string(optimizer_rule_name(rule)) + " in one pass, " + place,
          gigabytes / fused, gigabytes / apart, "addition, then optimizer", apart / fused};
}

std::vector<Comparison> compare_optimizers() {
  std::vector<Comparison> rows;
  for (const OptimizerRule rule : {OptimizerRule::nesterov, OptimizerRule::adamw}) {
    rows.push_back(compare_optimizer(rule, kBytesInL2, "in L2"));
    rows.push_back(compare_optimizer(rule, bytes_in_memory(), "in memory"));
  }
  return rows;
}

}  // namespace gradcube::aggregation::bench
