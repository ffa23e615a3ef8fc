#include "control/model/blueconnect_model.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <stdexcept>

#include "control/model/transfer_time.h"

namespace gradcube::control::model {
namespace {

// (p-1)/p n/w
double share_seconds(std::uint64_t p, double bytes, double w) {
  if (p == 0) throw std::invalid_argument("p is 0, but there is at least 1 learner");
  const auto learners = static_cast<double>(p);
  return (learners - 1) / learners * transfer_seconds(bytes, w);
}

// 2 T_r/c of each stage, over the part of the gradient that the stages before have left and at the
// least bandwidth so far. A port of stage i is shared by sharers(i) learners.
template <typename Sharers>
double blueconnect_seconds(std::span<const BlueConnectStage> stages, std::uint64_t least_p0,
                           double bytes, double alpha, Sharers sharers) {
  if (stages.empty()) throw std::invalid_argument("there is no stage, but there is at least 1");
  double seconds = 0;
  double least_w = stages[0].w;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::uint64_t least_p = i == 0 ? least_p0 : 2;
    if (stages[i].p < least_p) {
      throw std::invalid_argument(
          fmt::format("p_{} is {}, but it is at least {}", i, stages[i].p, least_p));
    }
    least_w = std::min(least_w, stages[i].w / sharers(i));
    seconds += 2 * best_stage_seconds(stages[i].p, bytes, alpha, least_w);
    bytes /= static_cast<double>(stages[i].p);
  }
  return seconds;
}

}  // namespace

double ring_stage_seconds(std::uint64_t p, double bytes, double alpha, double w) {
  const double seconds = share_seconds(p, bytes, w);
  return static_cast<double>(p - 1) * alpha + seconds;
}

double recursive_stage_seconds(std::uint64_t p, double bytes, double alpha, double w) {
  const double seconds = share_seconds(p, bytes, w);
  return std::bit_width(p - 1) * alpha + seconds;  // ceil(lg p)
}

double best_stage_seconds(std::uint64_t p, double bytes, double alpha, double w) {
  return std::has_single_bit(p) ? recursive_stage_seconds(p, bytes, alpha, w)
                                : ring_stage_seconds(p, bytes, alpha, w);
}

double broadcast_seconds(std::uint64_t p, double bytes, double alpha, double w) {
  return recursive_stage_seconds(p, bytes, alpha, w) + ring_stage_seconds(p, bytes, alpha, w);
}

double one_level_seconds(std::uint64_t p, double bytes, double alpha, double least_w) {
  return 2 * ring_stage_seconds(p, bytes, alpha, least_w);
}

double halving_doubling_seconds(std::uint64_t p, double bytes, double alpha, double w) {
  if (!std::has_single_bit(p)) {
    throw std::invalid_argument(fmt::format("p is {}, but it is a power of two", p));
  }
  return 2 * recursive_stage_seconds(p, bytes, alpha, w);
}

double two_level_seconds(std::uint64_t p0, std::uint64_t p1, double bytes, double alpha, double w0,
                         double least_w) {
  return 2 * broadcast_seconds(p0, bytes, alpha, w0) +
         2 * best_stage_seconds(p1, bytes, alpha, least_w);
}

double blueconnect_tree_seconds(std::span<const BlueConnectStage> stages, double bytes,
                                double alpha) {
  double below = 1;
  return blueconnect_seconds(stages, 2, bytes, alpha, [&](std::size_t i) {
    if (i > 0) below *= static_cast<double>(stages[i - 1].p);
    return below;
  });
}

double blueconnect_torus_seconds(std::span<const BlueConnectStage> stages, double bytes,
                                 double alpha) {
  return blueconnect_seconds(stages, 1, bytes, alpha, [&](std::size_t i) {
    return i == 0 ? 1 : static_cast<double>(stages[0].p);
  });
}

}  // namespace gradcube::control::model
