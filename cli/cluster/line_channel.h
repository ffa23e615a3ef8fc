// Reads one line of text from a descriptor, before a deadline: from the control socket, from a
// daemon's ready pipe, and from a launcher.
#ifndef GRADCUBE_CLI_CLUSTER_LINE_CHANNEL_H_
#define GRADCUBE_CLI_CLUSTER_LINE_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "control/base/descriptor.h"

namespace gradcube::cli {

using Deadline = std::chrono::steady_clock::time_point;

using control::Descriptor;

enum class LineEnd { line, closed, timed_out, too_long, failed };

// Appends a line to *text, without its newline. `closed`: the stream ended before a newline;
// `too_long`: the line has more than `limit` bytes; `failed`: errno says why. What was read behind
// the line is in *rest for the next call; without one it is lost.
LineEnd read_line(int descriptor, Deadline deadline, std::size_t limit, std::string* text,
                  std::string* rest = nullptr);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_LINE_CHANNEL_H_
