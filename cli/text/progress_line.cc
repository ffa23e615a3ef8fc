#include "cli/text/progress_line.h"

#include <condition_variable>
#include <csignal>
#include <fmt/format.h>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>

namespace gradcube::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetween{200};
constexpr std::string_view kErase = "\r\x1b[K";

// What a terminal does not take is not missed.
void write_some(int output, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(output, text.data(), text.size());
}

void show(const std::stop_token& stop, const std::function<std::string()>& text,
          std::chrono::milliseconds moment, int output) {
  const Clock::time_point start = Clock::now();
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  const auto pause = [&](std::chrono::milliseconds time) {
    return stopped.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
  };
  if (pause(moment)) return;
  do {
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start);
    write_some(output, fmt::format("\r{} ... {} s\x1b[K", text(), passed.count()));
  } while (!pause(kBetween));
  write_some(output, kErase);
}

}  // namespace

ProgressLine::ProgressLine(std::function<std::string()> text, std::chrono::milliseconds moment,
                           int output) {
  if (isatty(output) != 1) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    writer_ = std::jthread([text = std::move(text), moment, output](const std::stop_token& stop) {
      show(stop, text, moment, output);
    });
  } catch (const std::system_error&) {  // the work needs no thread
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace gradcube::cli
