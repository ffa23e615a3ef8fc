// The optimizers' kernels. optimize() does the last addition of a piece's gradients and the step of
// an optimizer on its weights, element by element, in one pass over the data: what aggregates a
// chunk also optimizes it (PHub, section 3.2.2).
//
// What it computes
// ----------------
// For each element, with w, m, v the weight and its state, s0, s1, ... the sources, and the numbers
// of OptimizerStep. All is float32 arithmetic, rounded to nearest, ties to even, after each
// operation. fma(a, b, c) is a * b + c, rounded once.
//
//     g = (s0 + s1) + s2 ...                       16-bit sources are widened first (exact)
//     g = g / divisor, then limited to [-clip, clip]           where the form `limits`
//     g = fma(w, weight_decay, g)                              where the form `decays`
//
//     sgd         w = fma(g, -rate, w)
//     momentum    m = fma(g, 1 - dampening, m * momentum);     w = fma(m, -rate, w)
//     nesterov    the same m;              w = fma(fma(m, momentum, g), -rate, w)
//     adam        m = fma(g, 1 - beta1, m * beta1);  v = fma(g * (1 - beta2), g, v * beta2)
//                 w = w + m * -(rate / (1 - beta1^t)) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//     adamw       w = w * (1 - rate * weight_decay), then as adam
//
// These are the operations of PyTorch 1.13's optimizers on a CPU with AVX2, in their order, with
// its fused multiply-add in its places: a step from the same state returns the same bits
// (tests/unit/aggregation/optimizers_test.py). Three things differ elsewhere:
//
// - Where PyTorch runs without AVX2, or on a GPU, it fuses other products with sums, or none, and
//   2.x moves Adam's m by lerp(): last places may differ.
// - optimize() adds the sources in float32. A sum that was rounded to 16 bits before (by reduce())
//   has lost what optimize() keeps.
// - m is kept from the first step on. PyTorch copies the first gradient into m without dampening;
//   optimizer_step.h gives the first step the numbers that do the same.
//
// The paper names Nesterov's method and gives no formula. This is PyTorch's (and MXNet's) form, in
// which w is the point at which the next gradient is taken, so that nothing but w is sent.
//
// The kernels of all instruction sets return the same bits: division, square root and fma() are
// correctly rounded on each. Only the sign and payload of a NaN are not specified. A NaN in
// a gradient passes the limits and ends in its weight. Denormals are ordinary numbers (kernels.h).
//
// Memory. Each array is read once and written once. Weights and state are float32. `rounded`
// receives the new weights in the sources' 16-bit type, rounded to nearest, ties to even; it may be
// the memory of one source. Nothing else may overlap. Any alignment works; 64 bytes is fastest.
// Nothing outside `count` elements is touched. The kernels allocate nothing and keep nothing, so
// any thread may call any kernel at any time.
#ifndef GRADCUBE_AGGREGATION_OPTIMIZER_H_
#define GRADCUBE_AGGREGATION_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>

#include "aggregation/element.h"
#include "aggregation/optimizer_step.h"

namespace gradcube::aggregation {

struct OptimizerArrays {
  float* weights;
  float* first;   // m; unused where optimizer_states() is 0
  float* second;  // v; unused where it is below 2
  void* rounded;  // unused where the sources are float32
};

// Adds `source_count` >= 1 arrays of `count` elements and does one step with the sum.
using OptimizeFunction = void (*)(const OptimizerArrays& arrays, const void* const* sources,
                                  std::size_t source_count, std::size_t count,
                                  const OptimizerStep& step) noexcept;

// The types that gradients may have: float32, float16, bfloat16.
inline constexpr std::size_t kGradientTypes = 3;

constexpr bool has_optimizers(DataType type) noexcept {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::bfloat16;
}

// The optimizers of one instruction set, a part of its Kernels.
struct Optimizers {
  OptimizeFunction functions[kGradientTypes][kOptimizerRules][kPreparations];

  // For steps of this form. nullptr if !has_optimizers(type).
  OptimizeFunction optimize(DataType type, OptimizerForm form) const noexcept {
    if (!has_optimizers(type)) return nullptr;
    const std::size_t row = type == DataType::float32 ? 0 : (type == DataType::float16 ? 1 : 2);
    return functions[row][static_cast<std::size_t>(form.rule)][form.preparation()];
  }
};

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_OPTIMIZER_H_
