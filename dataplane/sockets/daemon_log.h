// The daemon's log: lines with time and level on standard error. Only this header's source knows
// the library that writes them, whose headers take seconds to compile.
//
// Threads: the one that called begin(). Never the data path, which counts.
#ifndef GRADCUBE_DATAPLANE_SOCKETS_DAEMON_LOG_H_
#define GRADCUBE_DATAPLANE_SOCKETS_DAEMON_LOG_H_

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

namespace gradcube::dataplane::log {

enum class Level : unsigned char { info, warning, error };

// Before the first line. Without it (in tests) lines go to standard output.
void begin(const std::string& program);

void line(Level level, std::string_view text);

template <typename... Arguments>
void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  line(Level::info, fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <typename... Arguments>
void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  line(Level::warning, fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <typename... Arguments>
void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  line(Level::error, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace gradcube::dataplane::log

#endif  // GRADCUBE_DATAPLANE_SOCKETS_DAEMON_LOG_H_
