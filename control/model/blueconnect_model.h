// BlueConnect's performance models: all-reduce over networks whose levels differ in bandwidth
// (BlueConnect, sections 2.2, 2.3 and 3.3, Eq. 1 to 10).
//
//   p      learners that take part (the servers of this project, with one trainer each)
//   bytes  the paper's n or N, "the gradient's size in unit": the buffer of each learner
//   alpha  seconds for each transfer, whatever its size
//   w      bits per second
//
// All times are in seconds. Assumed: addition takes no time.
//
// Where the text is wrong, or leaves a choice:
//   - Eq. 2 holds for a p that is a power of two, yet Eq. 4 and 7 take it for any. It then counts
//     ceil(lg p) transfers, as many as a binary tree of p learners has rounds.
//   - Eq. 8 has factors p_0 to p_k on its left side and k factors on its right. There is one for
//     each bandwidth: p_0 to p_(|W|-1), as in section 3.3.
//   - The last forms of Eq. 9 and 10 take the least bandwidth over j < i. The terms that Eq. 9
//     writes out include j = i, and without it stage i would not depend on its own network. So it
//     is j <= i.
//
// Every function throws std::invalid_argument for p = 0 and for what the stages below do not allow.
#ifndef GRADCUBE_CONTROL_MODEL_BLUECONNECT_MODEL_H_
#define GRADCUBE_CONTROL_MODEL_BLUECONNECT_MODEL_H_

#include <cstdint>
#include <span>

namespace gradcube::control::model {

// Eq. 1, T_r: reduce-scatter or all-gather around a ring, (p-1) alpha + (p-1)/p n/w.
double ring_stage_seconds(std::uint64_t p, double bytes, double alpha, double w);

// Eq. 2, T_c: the same by recursive halving or doubling, lg(p) alpha + (p-1)/p n/w.
double recursive_stage_seconds(std::uint64_t p, double bytes, double alpha, double w);

// Eq. 3, T_r/c: Eq. 2 if p is a power of two, else Eq. 1.
double best_stage_seconds(std::uint64_t p, double bytes, double alpha, double w);

// Eq. 4: broadcast or reduce, T_c + T_r.
double broadcast_seconds(std::uint64_t p, double bytes, double alpha, double w);

// Eq. 5 and 6: all-reduce around one ring of all learners, 2 T_r at the least bandwidth.
double one_level_seconds(std::uint64_t p, double bytes, double alpha, double least_w);

// All-reduce by recursive halving, then doubling: 2 T_c (section 2.2). Throws
// std::invalid_argument unless p is a power of two.
double halving_doubling_seconds(std::uint64_t p, double bytes, double alpha, double w);

// Eq. 7: p0 learners of each node reduce to one of them at the bandwidth w0, these p1 do an
// all-reduce at the least bandwidth, and then broadcast in their node.
double two_level_seconds(std::uint64_t p0, std::uint64_t p1, double bytes, double alpha, double w0,
                         double least_w);

// A stage of BlueConnect: p learners exchange over a network of bandwidth w.
struct BlueConnectStage {
  std::uint64_t p = 0;
  double w = 0;  // bits per second
};

// Eq. 9: BlueConnect on a tree of switches. stages[i] is p_i and w_i, from the learners up; all
// p_0 * ... * p_(i-1) learners below a port of level i share its w_i. Throws std::invalid_argument
// unless there is a stage and every p_i is above 1 (Eq. 8).
double blueconnect_tree_seconds(std::span<const BlueConnectStage> stages, double bytes,
                                double alpha);

// Eq. 10: BlueConnect on a torus. stages[0] is inside a node; the p_0 learners of a node share the
// cables of each dimension, and no others do. p_0 may be 1, a node with one learner. The rings go
// one way round, so one cable of each dimension is idle.
double blueconnect_torus_seconds(std::span<const BlueConnectStage> stages, double bytes,
                                 double alpha);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_BLUECONNECT_MODEL_H_
