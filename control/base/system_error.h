// What a system call was refused, as an error that people read.
#ifndef GRADCUBE_CONTROL_BASE_SYSTEM_ERROR_H_
#define GRADCUBE_CONTROL_BASE_SYSTEM_ERROR_H_

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "control/base/errors.h"

namespace gradcube::control {

// "cannot make a pipe: Too many open files": the reason is that of errno.
template <typename... Values>
SetupError system_error(fmt::format_string<Values...> what, Values&&... values) {
  const int error = errno;  // before anything else may change it
  return SetupError(fmt::format("{}: {}", fmt::format(what, std::forward<Values>(values)...),
                                std::strerror(error)));
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_SYSTEM_ERROR_H_
