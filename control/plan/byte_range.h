// base/byte_range.h, for the folders above this one.
#ifndef GRADCUBE_CONTROL_PLAN_BYTE_RANGE_H_
#define GRADCUBE_CONTROL_PLAN_BYTE_RANGE_H_

#include "control/plan/base/byte_range.h"

#endif  // GRADCUBE_CONTROL_PLAN_BYTE_RANGE_H_
