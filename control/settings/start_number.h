// A number that grows with each start of a daemon in a run directory: others know by it that what
// they hear comes from an earlier one.
//
// It is the time, in microseconds, or one more than at the last start if the system's clock was set
// back since. For that the directory has a file, `started`, with the last number. Where the file is
// lost, as after a start of the host, it is the time alone.
#ifndef GRADCUBE_CONTROL_SETTINGS_START_NUMBER_H_
#define GRADCUBE_CONTROL_SETTINGS_START_NUMBER_H_

#include <chrono>
#include <cstdint>

#include "control/settings/run_directory.h"

namespace gradcube::control {

// lock: of the directory: nobody else writes the file. Where it cannot be written, the number is
// right for this start all the same.
std::uint64_t next_start_number(
    const RunDirectory& directory, const DaemonLock& lock,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_START_NUMBER_H_
