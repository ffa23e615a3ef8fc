#include "dataplane/sockets/daemon_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace gradcube::dataplane::log {

namespace {

spdlog::level::level_enum library_level(Level level) {
  switch (level) {
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void begin(const std::string& program) {
  spdlog::set_default_logger(spdlog::stderr_logger_st(program));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  spdlog::flush_on(spdlog::level::info);
}

void line(Level level, std::string_view text) {
  spdlog::log(library_level(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace gradcube::dataplane::log
