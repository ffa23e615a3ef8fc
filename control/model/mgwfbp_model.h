// MG-WFBP's communication model: an all-reduce of M bytes takes T_ar(M) = a + bM (MG-WFBP, section
// II-D, Eq. 9 and 10, Table II).
//
//   N      nodes
//   alpha  seconds that a message between two nodes takes before its first byte
//   beta   seconds per byte between two nodes: 8 / bits per second
//   gamma  seconds to add one byte to another in a node
//
// Where the text leaves a choice:
//   - Table I calls gamma the time to add two floating point numbers, and beta and b times per
//     byte. In Table II gamma stands beside beta, so it is per byte here: of 4-byte floats, a
//     quarter of the time of one addition.
//   - The paper assumes that N is a power of two. The row of the ring needs it nowhere, and is
//     taken for every N; the others refuse another N.
//
// Every function throws std::invalid_argument for N < 2, and the rows of a tree or of recursive
// algorithms for an N that is no power of two.
#ifndef GRADCUBE_CONTROL_MODEL_MGWFBP_MODEL_H_
#define GRADCUBE_CONTROL_MODEL_MGWFBP_MODEL_H_

#include <cstdint>

namespace gradcube::control::model {

struct NodeCosts {
  double alpha = 0;
  double beta = 0;
  double gamma = 0;
};

// The line of one algorithm on N nodes.
struct AllReduceCost {
  double a = 0;  // seconds
  double b = 0;  // seconds per byte

  // Eq. 9: T_ar(M). With a > 0, one all-reduce of M1 + M2 bytes takes less than two (Eq. 10).
  double seconds(double M) const { return a + b * M; }
};

// The rows of Table II.
//   binary tree                     a = 2 alpha lg N      b = (2 beta + gamma) lg N
//   recursive doubling              a = alpha lg N        b = (beta + gamma) lg N
//   recursive halving and doubling  a = 2 alpha lg N      b = 2 beta - (2 beta + gamma)/N + gamma
//   ring                            a = 2(N-1) alpha      b = 2(N-1)/N beta + (N-1)/N gamma
AllReduceCost binary_tree_cost(std::uint64_t N, const NodeCosts& costs);
AllReduceCost recursive_doubling_cost(std::uint64_t N, const NodeCosts& costs);
AllReduceCost halving_doubling_cost(std::uint64_t N, const NodeCosts& costs);
AllReduceCost ring_cost(std::uint64_t N, const NodeCosts& costs);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_MGWFBP_MODEL_H_
