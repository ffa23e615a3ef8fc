// Whether a number from the daemon is one of gradcube.h's codes that it may give.
#ifndef GRADCUBE_TRAINER_SRC_BASE_RESULT_CODE_H_
#define GRADCUBE_TRAINER_SRC_BASE_RESULT_CODE_H_

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

// They have no gap. What comes after them, GRADCUBE_ECORRUPT, the library alone finds.
constexpr bool is_result_code(int code) {
  return code <= GRADCUBE_OK && code >= GRADCUBE_ECANCELED;
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_RESULT_CODE_H_
