// The inputs of simulated trainers, and the results that must come out.
//
// In a reproducible job the buffer holds carriers, which are made and read here as the trainer's
// library does it (aggregation/reproducible.h).
//
// A contribution is a function of (rank, collective, element), so nothing stores it: the oracle
// computes it again. All ranks are those that the trainers see; the plan's may be others. In
// averages, 16-bit floats are so large that sums overflow, and integers are so small that sums fit.
#ifndef GRADCUBE_TESTS_SIMULATION_INPUTS_H_
#define GRADCUBE_TESTS_SIMULATION_INPUTS_H_

#include <cstdint>
#include <vector>

#include "aggregation/element.h"
#include "aggregation/reproducible.h"
#include "control/plan/base/plan.h"
#include "control/plan/collective_kind.h"
#include "dataplane/engine/session/rank_order.h"
#include "tests/simulation/simulated_trainer.h"

namespace gradcube::simulation {

// One collective as a trainer submits it.
struct Collective {
  std::uint64_t offset = shared::kHeapOffset;
  std::uint64_t count = 0;  // elements of the whole buffer
  aggregation::DataType dtype = aggregation::DataType::float32;
  aggregation::Operation operation = aggregation::Operation::sum;
  control::CollectiveKind kind = control::CollectiveKind::all_reduce;
  std::uint32_t root = 0;
  unsigned lane = 0;
  std::uint64_t salt = 0;  // makes the inputs of two collectives differ
  bool overflows = false;  // an average of integers with one element that does not fit
  // The trainers of its job, if that is reproducible and fewer than kMostReproducibleFloat64.
  std::uint32_t reproduced_among = 0;

  // Whether the buffer holds carriers.
  bool carries() const { return reproduced_among != 0 && control::reduces(kind); }
  aggregation::ReproducibleReduction reduction() const {
    return {dtype, operation, reproduced_among};
  }
  // Of what is in the buffer.
  std::size_t element_bytes() const {
    return aggregation::element_bytes(carries() ? aggregation::carrier_of(reduction())->type
                                                : dtype);
  }
  std::uint64_t bytes() const { return count * element_bytes(); }
};

// Writes the elements [first, first + length) that a rank has to give.
void write_input(const Collective& collective, std::uint32_t rank, std::size_t first,
                 std::size_t length, void* out);

// Fills the trainer's buffer and submits it.
std::uint64_t fill_and_submit(SimulatedTrainer& trainer, const Collective& collective);

// The right result at a rank, to the last bit: what the kind defines of its buffer.
struct Expected {
  std::size_t first = 0;  // of the buffer's elements
  std::vector<std::uint8_t> bytes;
};
Expected expected_result(const control::Plan& plan, const dataplane::RankOrder& order,
                         const Collective& collective, std::uint32_t rank);

// Whether a kind defines something else of each rank's buffer.
constexpr bool differs_by_rank(control::CollectiveKind kind) {
  return kind == control::CollectiveKind::reduce_scatter || kind == control::CollectiveKind::reduce;
}

// How many of these elements of the trainer's buffer are wrong.
std::size_t wrong_elements(SimulatedTrainer& trainer, const Collective& collective,
                           const Expected& expected);

// The trainer uses its buffer for something else.
void scribble(SimulatedTrainer& trainer, const Collective& collective);

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_INPUTS_H_
