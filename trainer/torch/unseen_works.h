// Works that nobody has seen. Where a signal's handler raises, Python looks for signals when the
// call that made a work has returned, in the same instruction, and lets go of the work as the
// exception passes: nobody can wait for it any more. Such a work is lost (work.h), as one whose
// wait a signal has ended. A work that is dropped anywhere else, or by what its instruction raises
// by itself, is its caller's.
//
// All of it runs under the interpreter's lock.
#ifndef GRADCUBE_TRAINER_TORCH_UNSEEN_WORKS_H_
#define GRADCUBE_TRAINER_TORCH_UNSEEN_WORKS_H_

#include <torch/csrc/utils/pybind.h>

namespace gradcube::pytorch {

// Sets up the Python type of GradcubeWork so that unseen ones are lost, and that only a process
// group makes any.
void lose_unseen_works(PyHeapTypeObject* type);

}  // namespace gradcube::pytorch

#endif  // GRADCUBE_TRAINER_TORCH_UNSEEN_WORKS_H_
