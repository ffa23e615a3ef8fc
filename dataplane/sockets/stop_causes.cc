#include "dataplane/sockets/stop_causes.h"

#include <cerrno>
#include <signal.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

#include "dataplane/sockets/daemon_log.h"

namespace gradcube::dataplane {

namespace {

int watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

StopCauses::StopCauses(ControlLoop& loop, ControlServer& server,
                       const control::RunDirectory& directory, const control::DaemonLock& lock)
    : loop_(loop), directory_(directory, lock), signals_(watched_signals()) {
  if (signals_.get() < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch signals");
  }
  loop_.add(signals_.get(), [this] {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return;
    log::info("ending on signal {}", info.ssi_signo);
    any_ = true;
  });
  server.add("down", [this](const nlohmann::json&) {
    log::info("ending on request");
    any_ = true;
    return nlohmann::ordered_json::object();
  });
}

StopCauses::~StopCauses() { loop_.remove(signals_.get()); }

std::optional<std::string> StopCauses::look(SteadyClock::time_point now) {
  auto lost = directory_.look(now);
  if (!lost.has_value() || any_) return std::nullopt;
  log::error("{}: ending", *lost);
  any_ = true;
  return lost;
}

}  // namespace gradcube::dataplane
