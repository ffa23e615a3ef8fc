#include "dataplane/daemon/process/starter.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <unistd.h>

#include "control/base/json_text.h"

namespace gradcube::dataplane {

Starter::Starter(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ >= 0) fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

void Starter::begin_watching() {
  if (descriptor_ < 0) return;
  ready_ = eventfd(0, EFD_CLOEXEC);
  // Without it nobody could end the watcher. tell() still finds out whether anyone listens.
  if (ready_ < 0) return;
  watcher_ = std::thread([this] { watch(); });
}

bool Starter::tell(const nlohmann::ordered_json& line) {
  if (descriptor_ < 0) return true;
  stop_watching();
  const std::string text = control::json_text(line) + "\n";
  const bool told =
      write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(descriptor_);
  descriptor_ = -1;
  return told;
}

// On a thread of its own, because DPDK's start blocks the main thread. Nothing has to be undone: no
// trainer has joined, and the kernel gives the lock back.
void Starter::watch() const {
  std::array<pollfd, 2> events{pollfd{descriptor_, 0, 0}, pollfd{ready_, POLLIN, 0}};
  while (poll(events.data(), events.size(), -1) < 0 && errno == EINTR) {
  }
  if (events[1].revents != 0 || (events[0].revents & (POLLERR | POLLHUP)) == 0) return;
  constexpr std::string_view kMessage =
      "gradcubed ends: the process that started it ended before it was ready\n";
  (void)!write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(1);
}

void Starter::stop_watching() {
  if (!watcher_.joinable()) return;
  eventfd_write(ready_, 1);
  watcher_.join();
  close(ready_);
}

}  // namespace gradcube::dataplane
