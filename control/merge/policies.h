// Which layers' gradients travel as one message while the backward pass goes on (MG-WFBP, sections
// II and III): an iteration of training, and four policies.
//
// The backward pass goes from the last layer to the first. A layer's gradients are ready when its
// part of the pass ends (mu_b, Eq. 6). A message has the gradients of adjacent layers. It leaves
// when the first of them, which comes last in the pass, is ready and the message before has been
// all-reduced (Eq. 7, 15 and 20); an all-reduce of M bytes takes T_ar(M) = a + bM (Eq. 9). The
// iteration ends with its last message (Eq. 8 and 21).
//
//   wfbp       each layer alone, as soon as it is ready (MG-WFBP, section II-C)
//   synceasgd  all layers in one message, after the backward pass (section I)
//   mgwfbp     MG-WFBP's Algorithm 1
//   optimal    the messages with which the iteration ends first
//
// Theorem 1 says that Algorithm 1 finds the least iteration time. It does not: its condition,
// tau_b^(l-2) - tau_c^(l) < a, compares only when the gradients of layer l-1 have travelled, with
// and without layer l among them, and counts on l-1 to travel next. If l-1 is then merged into l-2,
// layer l need not have waited. docs/mg-wfbp.md has the smallest example, with three layers.
//
// `optimal` is exact. Let end(l) be the earliest time at which the layers l..L have travelled. The
// message with layer l has some layers l..m, and an earlier end of those above m never hurts, so
//
//   end(l) = min over m of max(end(m+1), ready(l)) + a + b * bytes(l..m)
//
// Of messages with equal ends it takes the fewest.
//
// Where the text leaves a choice: Algorithm 1 reads tau_b[0], which it never sets; it is the end of
// the backward pass, when layer 1 is ready. The condition of the proof of Theorem 1 has b where the
// theorem has a; a is meant, as C.2 before it shows.
//
// Steps: O(L) for the first two, O(L^2) for the others.
//
// Units: seconds and bytes. Layers count from 0 here, from the first to the last; the paper's l is
// one more. Pure functions: equal inputs give equal bits, so two ways to the same messages compare
// equal.
#ifndef GRADCUBE_CONTROL_MERGE_POLICIES_H_
#define GRADCUBE_CONTROL_MERGE_POLICIES_H_

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

enum class Policy { wfbp, synceasgd, mgwfbp, optimal };

// In the order of sending, the message with the last layer first. Each layer is in one message.
std::vector<Message> messages_of(Policy policy, const Iteration& iteration);

}  // namespace gradcube::control::merge

#endif  // GRADCUBE_CONTROL_MERGE_POLICIES_H_
