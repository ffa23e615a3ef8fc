// The inputs of simulated trainers, and the results that must come out.
//
// A contribution is a function of (server, collective, element), so nothing stores it: the oracle
// computes it again. In averages, 16-bit floats are so large that sums overflow, and integers are
// so small that sums fit.
#ifndef GRADCUBE_TESTS_SIMULATION_INPUTS_H_
#define GRADCUBE_TESTS_SIMULATION_INPUTS_H_

#include <cstdint>
#include <vector>

#include "aggregation/element.h"
#include "control/plan/plan.h"
#include "tests/simulation/simulated_trainer.h"

namespace gradcube::simulation {

// One collective as a trainer submits it.
struct Collective {
  std::uint64_t offset = shared::kHeapOffset;
  std::uint64_t count = 0;
  aggregation::DataType dtype = aggregation::DataType::float32;
  aggregation::Operation operation = aggregation::Operation::sum;
  std::uint64_t salt = 0;  // makes the inputs of two collectives differ
  bool overflows = false;  // an average of integers with one element that does not fit

  std::uint64_t bytes() const { return count * aggregation::element_bytes(dtype); }
};

// Writes the elements [first, first + length) of a server's contribution.
void write_input(const Collective& collective, std::uint32_t server, std::size_t first,
                 std::size_t length, void* out);

// Fills the trainer's buffer and submits it.
std::uint64_t fill_and_submit(SimulatedTrainer& trainer, const Collective& collective);

// The right result, to the last bit.
std::vector<std::uint8_t> expected_result(const control::Plan& plan, const Collective& collective);

// How many elements of the trainer's buffer are wrong.
std::size_t wrong_elements(SimulatedTrainer& trainer, const Collective& collective,
                           const std::vector<std::uint8_t>& expected);

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_INPUTS_H_
