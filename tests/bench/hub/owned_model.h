// A model as the owner of all its keys has it in memory, in float32: the workers' gradients, the
// weights, and the momentum of Nesterov's method. One array of each goes over all keys.
//
// Memory is allocated and touched by constructors, which throw std::bad_alloc. Threads may step
// ranges that do not overlap at the same time.
#ifndef GRADCUBE_TESTS_BENCH_HUB_OWNED_MODEL_H_
#define GRADCUBE_TESTS_BENCH_HUB_OWNED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregation/optimizer.h"
#include "tests/bench/aggregation/measuring.h"

namespace gradcube::bench {

// Elements of every array.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Random numbers within [-1, 1), the same in every run.
class Gradients {
 public:
  Gradients(std::size_t workers, std::size_t elements);

  std::size_t workers() const { return arrays_.size(); }
  // Writes each worker's address of element `first`.
  void point_at(std::size_t first, std::span<const void*> sources) const;

 private:
  std::vector<aggregation::bench::Memory> arrays_;
};

// Weights and momentum; both begin as zeros.
class OwnedModel {
 public:
  explicit OwnedModel(std::size_t elements);

  aggregation::OptimizerArrays from(std::size_t first) const;
  bool has_bits_of(const OwnedModel& other) const;

 private:
  std::size_t bytes_;  // of each array
  aggregation::bench::Memory weights_;
  aggregation::bench::Memory momentum_;
};

// A step of Nesterov's method that is not the first, with the gradients' sum divided by `divisor`.
struct NesterovStep {
  explicit NesterovStep(std::uint32_t divisor);

  aggregation::OptimizeFunction optimize;  // the widest of this machine
  aggregation::OptimizerStep numbers;
};

}  // namespace gradcube::bench

#endif  // GRADCUBE_TESTS_BENCH_HUB_OWNED_MODEL_H_
