// What an all-reduce costs: a line over its bytes, T_ar(M) = a + bM (MG-WFBP, section II-D, Eq. 9).
#ifndef GRADCUBE_CONTROL_MODEL_ALL_REDUCE_COST_H_
#define GRADCUBE_CONTROL_MODEL_ALL_REDUCE_COST_H_

namespace gradcube::control::model {

struct AllReduceCost {
  double a = 0;  // seconds
  double b = 0;  // seconds per byte

  // Eq. 9: T_ar(M). With a > 0, one all-reduce of M1 + M2 bytes takes less than two (Eq. 10).
  double seconds(double M) const { return a + b * M; }
};

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_ALL_REDUCE_COST_H_
