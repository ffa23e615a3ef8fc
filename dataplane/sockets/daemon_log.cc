#include "dataplane/sockets/daemon_log.h"

#include <array>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace gradcube::dataplane::log {

void begin(const std::string& program) {
  spdlog::set_default_logger(spdlog::stderr_logger_st(program));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  spdlog::flush_on(spdlog::level::info);
}

void line(Level level, std::string_view text) {
  constexpr std::array kLevels = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  spdlog::log(kLevels.at(static_cast<std::size_t>(level)),
              spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace gradcube::dataplane::log
