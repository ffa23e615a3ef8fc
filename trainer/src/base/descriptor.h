// The library's file descriptors: the checkpoints' own, which the library has in it.
#ifndef GRADCUBE_TRAINER_SRC_BASE_DESCRIPTOR_H_
#define GRADCUBE_TRAINER_SRC_BASE_DESCRIPTOR_H_

#include "control/base/descriptor.h"

namespace gradcube::trainer {

using control::Descriptor;

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_DESCRIPTOR_H_
