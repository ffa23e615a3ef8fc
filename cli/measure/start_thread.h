// A thread, or an error that says what the host has too little of.
#ifndef GRADCUBE_CLI_MEASURE_START_THREAD_H_
#define GRADCUBE_CLI_MEASURE_START_THREAD_H_

#include <fmt/format.h>
#include <system_error>
#include <thread>
#include <utility>

#include "control/base/errors.h"

namespace gradcube::cli {

// Throws control::SetupError.
template <typename Work>
std::jthread start_thread(Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw control::SetupError(
        fmt::format("cannot start a thread: {}: raise what this user or container may have of "
                    "processes (ulimit -u, pids.max) and of memory (ulimit -v)",
                    error.code().message()));
  }
}

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_START_THREAD_H_
