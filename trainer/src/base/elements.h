// Sizes of what collectives work on.
#ifndef GRADCUBE_TRAINER_SRC_BASE_ELEMENTS_H_
#define GRADCUBE_TRAINER_SRC_BASE_ELEMENTS_H_

#include <cstddef>

#include "aggregation/element.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// Bytes of one element; 0 when `dtype` is no gradcube_dtype.
constexpr std::size_t element_size(int dtype) {
  return dtype >= 0 && aggregation::is_data_type(static_cast<std::size_t>(dtype))
             ? aggregation::element_bytes(static_cast<aggregation::DataType>(dtype))
             : 0;
}

constexpr bool is_op(int op) { return op >= GRADCUBE_SUM && op <= GRADCUBE_MAX; }

// Whether its elements are combined by this gradcube_op.
constexpr bool is_combined(int dtype, int op) {
  return element_size(dtype) != 0 && is_op(op) &&
         aggregation::supports(static_cast<aggregation::DataType>(dtype),
                               static_cast<aggregation::Operation>(op));
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_ELEMENTS_H_
