// Whether a number from the daemon is one of gradcube.h's codes.
#ifndef GRADCUBE_TRAINER_SRC_BASE_RESULT_CODE_H_
#define GRADCUBE_TRAINER_SRC_BASE_RESULT_CODE_H_

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// The codes have no gap: from 0 down to the latest one.
constexpr bool is_result_code(int code) {
  return code <= GRADCUBE_OK && code >= GRADCUBE_ECANCELED;
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_RESULT_CODE_H_
