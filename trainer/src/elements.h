// Sizes of what collectives work on.
#ifndef GRADCUBE_TRAINER_SRC_ELEMENTS_H_
#define GRADCUBE_TRAINER_SRC_ELEMENTS_H_

#include <cstddef>

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// Bytes of one element; 0 when `dtype` is no gradcube_dtype.
constexpr std::size_t element_size(int dtype) {
  switch (dtype) {
    case GRADCUBE_INT8:
    case GRADCUBE_UINT8:
    case GRADCUBE_BYTES:
      return 1;
    case GRADCUBE_FLOAT16:
    case GRADCUBE_BFLOAT16:
      return 2;
    case GRADCUBE_FLOAT32:
    case GRADCUBE_INT32:
      return 4;
    case GRADCUBE_FLOAT64:
    case GRADCUBE_INT64:
      return 8;
    default:
      return 0;
  }
}

constexpr bool is_op(int op) { return op >= GRADCUBE_SUM && op <= GRADCUBE_MAX; }

// Sums of 8-bit integers overflow too soon for an average to be of use.
constexpr bool has_average(int dtype) {
  return dtype != GRADCUBE_INT8 && dtype != GRADCUBE_UINT8 && dtype != GRADCUBE_BYTES;
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_ELEMENTS_H_
