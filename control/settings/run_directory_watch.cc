#include "control/settings/run_directory_watch.h"

#include <fmt/format.h>

namespace gradcube::control {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);
constexpr auto kTouchEvery = std::chrono::hours(1);

}  // namespace

std::optional<std::string> RunDirectoryWatch::look(SteadyClock::time_point now) {
  if (now >= next_touch_) {
    next_touch_ = now + kTouchEvery;
    directory_.touch_files();
  }
  if (lost_ || now < next_look_) return std::nullopt;
  next_look_ = now + kLookEvery;
  if (lock_.is_in(directory_)) return std::nullopt;
  lost_ = true;
  return fmt::format("the run directory {} was removed or replaced", directory_.path().string());
}

}  // namespace gradcube::control
