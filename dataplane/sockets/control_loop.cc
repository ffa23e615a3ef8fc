#include "dataplane/sockets/control_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gradcube::dataplane {

namespace {

constexpr int kTickMilliseconds = 20;
constexpr std::uint32_t kReadable = EPOLLIN | EPOLLRDHUP;

// What epoll hands back with an event: the descriptor, and which add() of it the event belongs to.
std::uint64_t event_key(int descriptor, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(descriptor);
}
int descriptor_of(std::uint64_t key) { return static_cast<int>(key & UINT32_MAX); }
std::uint32_t generation_of(std::uint64_t key) { return static_cast<std::uint32_t>(key >> 32); }

}  // namespace

ControlLoop::ControlLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot create an epoll set");
}

ControlLoop::~ControlLoop() { close(epoll_); }

void ControlLoop::watch(int descriptor, int operation, std::uint32_t events,
                        std::uint32_t generation) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = event_key(descriptor, generation);
  if (epoll_ctl(epoll_, operation, descriptor, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch a descriptor");
  }
}

void ControlLoop::add(int descriptor, std::function<void()> on_readable) {
  const std::uint32_t generation = next_generation_++;
  watch(descriptor, EPOLL_CTL_ADD, kReadable, generation);
  watches_[descriptor] = std::make_shared<const Watch>(Watch{generation, std::move(on_readable)});
}

void ControlLoop::pause(int descriptor) {
  watch(descriptor, EPOLL_CTL_MOD, 0, watches_.at(descriptor)->generation);
}

void ControlLoop::resume(int descriptor) {
  watch(descriptor, EPOLL_CTL_MOD, kReadable, watches_.at(descriptor)->generation);
}

void ControlLoop::pause_for(int descriptor, Clock::duration pause) {
  // First: what cannot be noted for want of memory would be paused for ever.
  paused_until_[descriptor] = Clock::now() + pause;
  this->pause(descriptor);
}

// One trainer's or tool's failure must not end the daemon for all others, nor must want of memory.
template <typename Callback>
void ControlLoop::guarded(const Callback& callback) {
  const Clock::time_point begin = Clock::now();
  try {
    callback();
  } catch (const std::exception& error) {
    log_without_fail(error.what());
  }
  const Clock::duration took = Clock::now() - begin;
  ++steps_.steps;
  if (took > kLongStep) ++steps_.long_ones;
  steps_.longest = std::max(steps_.longest, took);
}

void ControlLoop::log_without_fail(const char* line) {
  try {
    log_.line(line);
  } catch (const std::exception&) {
    // There is no memory for it.
  }
}

void ControlLoop::resume_paused() {
  if (paused_until_.empty()) return;
  std::erase_if(paused_until_, [this, now = Clock::now()](const auto& paused) {
    bool resumed = false;
    if (paused.second <= now) {
      guarded([&] {
        resume(paused.first);
        resumed = true;
      });
    }
    return resumed;
  });
}

void ControlLoop::remove(int descriptor) {
  paused_until_.erase(descriptor);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  watches_.erase(descriptor);
}

void ControlLoop::run() {
  stopped_ = false;
  std::array<epoll_event, 64> events{};
  while (!stopped_) {
    const int longest = std::exchange(hurries_, false) ? 0 : kTickMilliseconds;
    const int count = epoll_wait(epoll_, events.data(), events.size(), longest);
    if (count < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot wait for events");
    }
    for (int i = 0; i < count && !stopped_; ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      const auto found = watches_.find(descriptor_of(key));
      if (found == watches_.end() || found->second->generation != generation_of(key)) continue;
      const std::shared_ptr<const Watch> watch = found->second;  // outlives its own removal
      guarded(watch->on_readable);
    }
    resume_paused();
    if (tick_) guarded(tick_);
  }
}

}  // namespace gradcube::dataplane
