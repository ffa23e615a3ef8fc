#include "dataplane/sockets/client_log.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

ClientLog::ClientLog() : ClientLog([](const std::string& text) { log::warn("{}", text); }) {}

ClientLog::ClientLog(std::function<void(const std::string&)> write) : write_(std::move(write)) {}

void ClientLog::line(const std::string& text, SteadyClock::time_point now) {
  const SteadyClock::time_point next_full = std::max(full_at_, now) + kInterval;
  if (next_full > now + kBurst * kInterval) {
    ++left_out_;
    return;
  }
  full_at_ = next_full;
  if (left_out_ != 0) {
    write_(fmt::format("{} lines about trainers and clients were left out here", left_out_));
    left_out_ = 0;
  }
  write_(text);
}

}  // namespace gradcube::dataplane
