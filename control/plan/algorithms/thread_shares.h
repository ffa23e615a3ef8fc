// The shares of the buffer that BML's threads take where levels have different rates: those that
// make the fullest link's time least.
//
// Thread t goes over the levels t, t+1, ... (mod k). When it comes to level l it has 1 / (n_t ...
// n_(l-1)) of its share left, and it sends (n_l - 1) / n_l of that. So the time of level l's links
// is a sum over the threads' shares, and the largest of k such sums is to be least: a small linear
// programme. Its solution lies where as many levels are equally full as threads have a share
// (Shapley and Snow, "Basic solutions of discrete games", 1950), so all such sets are tried.
//
// All servers must get the same shares. They are computed in one order from the same numbers, and
// rounded to 60,000ths, of which each thread has at least one.
//
// A pure function. It throws nothing and is made for at most kMaxDimensions levels.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_THREAD_SHARES_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_THREAD_SHARES_H_

#include <span>
#include <vector>

namespace gradcube::control {

struct LevelLinks {
  unsigned radix = 0;
  double rate_bps = 0;  // that a server has of it; 0: not limited
};

// A weight for each thread: the threads' shares are in proportion to them. Where all levels have
// the same rate, or one has none, all weights are 1.
std::vector<unsigned> balanced_weights(std::span<const LevelLinks> levels);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_THREAD_SHARES_H_
