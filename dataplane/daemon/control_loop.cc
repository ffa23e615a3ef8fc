#include "dataplane/daemon/control_loop.h"

#include <array>
#include <cerrno>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>

namespace gradcube::dataplane {

namespace {
constexpr int kTickMilliseconds = 20;
}

ControlLoop::ControlLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot create an epoll set");
}

ControlLoop::~ControlLoop() { close(epoll_); }

void ControlLoop::add(int descriptor, std::function<void()> on_readable) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = descriptor;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch a descriptor");
  }
  watches_[descriptor] = std::make_shared<Watch>(Watch{std::move(on_readable)});
}

void ControlLoop::remove(int descriptor) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  watches_.erase(descriptor);
}

// One trainer's or tool's failure must not end the daemon for all others.
void ControlLoop::guarded(const std::function<void()>& callback) {
  try {
    callback();
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
  }
}

void ControlLoop::run() {
  std::array<epoll_event, 64> events{};
  while (!stopped_) {
    const int count = epoll_wait(epoll_, events.data(), events.size(), kTickMilliseconds);
    if (count < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot wait for events");
    }
    for (int i = 0; i < count && !stopped_; ++i) {
      const auto found = watches_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (found == watches_.end()) continue;
      const std::shared_ptr<Watch> watch = found->second;  // outlives its own removal
      guarded(watch->on_readable);
    }
    if (tick_) guarded(tick_);
  }
}

}  // namespace gradcube::dataplane
