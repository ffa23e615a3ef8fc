// An iteration of training whose layers' gradients travel while the backward pass goes on (MG-WFBP,
// sections II and III).
//
// The backward pass goes from the last layer to the first. A layer's gradients are ready when its
// part of the pass ends (mu_b, Eq. 6). A message has the gradients of adjacent layers. It leaves
// when the first of them, which comes last in the pass, is ready and the message before has been
// all-reduced (Eq. 7, 15 and 20); an all-reduce of M bytes takes T_ar(M) = a + bM (Eq. 9). The
// iteration ends with its last message (Eq. 8 and 21).
//
// Units: seconds and bytes. Layers count from 0 here, from the first to the last; the paper's l is
// one more. Pure functions: equal inputs give equal bits, so two ways to the same messages compare
// equal.
#ifndef GRADCUBE_CONTROL_MERGE_ITERATION_H_
#define GRADCUBE_CONTROL_MERGE_ITERATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/model/all_reduce_cost.h"

namespace gradcube::control::merge {

// What callers allow, so that no sum of times is infinite: of a and of each part of the passes, and
// of b.
inline constexpr double kMostSeconds = 1e9;
inline constexpr double kMostSecondsPerByte = 1;

struct Layer {
  std::uint64_t bytes = 0;      // of its gradients, p^(l)
  double backward_seconds = 0;  // t_b^(l)
};

struct Iteration {
  model::AllReduceCost cost;   // a and b
  double forward_seconds = 0;  // t_f
  std::vector<Layer> layers;   // one at least
};

// The gradients of layers first..last.
struct Message {
  std::size_t first = 0;
  std::size_t last = 0;

  friend bool operator==(const Message&, const Message&) = default;
};

// When each layer's gradients are ready (mu_b).
std::vector<double> ready_seconds(const Iteration& iteration);

// The end of an all-reduce of these bytes that is ready at one time, after a message that ends at
// another.
double end_seconds(const model::AllReduceCost& cost, std::uint64_t bytes, double ready,
                   double before);

}  // namespace gradcube::control::merge

#endif  // GRADCUBE_CONTROL_MERGE_ITERATION_H_
