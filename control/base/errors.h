// How control reports what went wrong at set-up. Both carry one whole message for the user: what,
// where, and what is accepted or what to do. Thrown in the control plane only, never on the data
// path.
#ifndef GRADCUBE_CONTROL_BASE_ERRORS_H_
#define GRADCUBE_CONTROL_BASE_ERRORS_H_

#include <stdexcept>

namespace gradcube::control {

// The input is bad: a flag, an argument, a cluster file. Tools exit with code 2 and have changed
// nothing.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The input is good but the system refused: a missing cluster, a file, a port. Tools exit with
// code 1.
class SetupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_ERRORS_H_
