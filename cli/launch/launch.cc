#include "cli/launch/launch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "cli/launch/launch_process.h"

namespace gradcube::cli {
namespace {

using control::Descriptor;
using Clock = std::chrono::steady_clock;

// How often it is looked whether the rest of a group has ended, of which no signal tells.
constexpr auto kGroupPause = std::chrono::milliseconds(50);
constexpr rlim_t kDescriptorsOfOthers = 64;
constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kReadsOfFullPipe = (1 << 20) / kReadBytes;
constexpr std::size_t kMostKept = 64 << 20;  // of what one process writes

// Room for three pipes for each process. Returns the limit that they are to have.
rlimit make_room(std::size_t processes) {
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  rlimit wide = old;
  wide.rlim_cur =
      std::min<rlim_t>(old.rlim_max, std::max(old.rlim_cur, 3 * processes + kDescriptorsOfOthers));
  setrlimit(RLIMIT_NOFILE, &wide);
  return old;
}

}  // namespace

Launcher::Launcher(const LaunchSettings& settings, const LaunchSignals& signals)
    : settings_(settings),
      signals_(signals),
      stages_(settings.tasks.size(), settings.grace, settings.each_alone),
      outlets_{LaunchOutlet(STDOUT_FILENO), LaunchOutlet(STDERR_FILENO)},
      kept_(settings.tasks.size()),
      untold_(settings.tasks.size()),
      hangup_(settings.hangup) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  start();
}

Launcher::~Launcher() { end_all(); }

void Launcher::end_all() {
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    if (stages_.end_of(i) && !stages_.leaves_others(i)) continue;
    kill(-pids_[i], SIGKILL);
    if (!stages_.end_of(i)) waitpid(pids_[i], nullptr, 0);
    guard_.remove(pids_[i]);
  }
}

void Launcher::start() {
  const rlimit descriptors = make_room(settings_.tasks.size());
  try {
    for (const LaunchTask& task : settings_.tasks) {
      LaunchedProcess process = launch_process(task, descriptors, signals_, guard_);
      const std::size_t number = pids_.size();
      tasks_[process.pid] = number;
      pids_.push_back(process.pid);
      inputs_.push_back(std::move(process.input));
      add_stream(std::move(process.output), number, 0);
      add_stream(std::move(process.errors), number, 1);
      if (task.input.has_value()) tell(number, *task.input);
    }
  } catch (...) {
    end_all();
    throw;
  }
}

// kind: 0 is standard output, 1 standard error.
void Launcher::add_stream(Descriptor pipe, std::size_t task, int kind) {
  LaunchOutlet* const outlet = &outlets_[settings_.output_to_errors ? 1 : kind];
  const bool kept = settings_.keeps_output;
  streams_.push_back({.pipe = std::move(pipe),
                      .lines = LaunchLines(settings_.tasks[task].mark),
                      .outlet = kept ? nullptr : outlet,
                      .text = kept ? &kept_[task][kind] : outlet->text()});
}

void Launcher::tell(std::size_t task, std::string_view text) {
  untold_[task] += text;
  tell_some(task);
}

void Launcher::tell_some(std::size_t task) {
  std::string& text = untold_[task];
  const ssize_t done = write(inputs_[task].get(), text.data(), text.size());
  if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
  text.erase(0, done < 0 ? text.size() : static_cast<std::size_t>(done));
}

void Launcher::stop() {
  stages_.stop(Clock::now());
  send_orders();
}

void Launcher::release(std::size_t task) {
  guard_.remove(pids_[task]);
  tasks_.erase(pids_[task]);
  stages_.on_end(task, {}, Clock::now());
  stages_.on_group_gone(task);
}

bool Launcher::run_until(const std::function<bool()>& enough, Time deadline) {
  const auto goes_on = [&] {
    return !enough() && Clock::now() < deadline && interrupted_by_ == 0 &&
           (settings_.each_alone || !stages_.first_failure()) && !stages_.all_gone();
  };
  while (goes_on()) step(deadline);
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    if (stages_.end_of(i)) drain();  // its last words may be there still
  }
  return enough();
}

LaunchReport Launcher::finish() {
  while (!stages_.all_gone()) step(std::nullopt);
  drain();
  write_rest();
  LaunchReport report{.first_failure = stages_.first_failure(),
                      .exit_code = stages_.exit_code(),
                      .interrupted_by = interrupted_by_,
                      .output_error = output_error_};
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    report.ends.push_back(*stages_.end_of(i));
    if (stages_.outstayed(i)) report.killed.push_back(i);
  }
  return report;
}

void Launcher::step(std::optional<Time> deadline) {
  wait_for_news(deadline);
  heed_signals();
  reap();
  look_at_groups();
  stages_.on_time(Clock::now());
  send_orders();
}

// Sleeps until something has happened, and passes on what has been written.
void Launcher::wait_for_news(std::optional<Time> deadline) {
  std::vector<pollfd> polled{{signals_.descriptor(), POLLIN, 0}, {hangup_, POLLIN, 0}};
  for (const LaunchOutlet& outlet : outlets_) {
    // Poll skips a negative number.
    polled.push_back({outlet.has_text() ? outlet.descriptor() : -1, POLLOUT, 0});
  }
  const std::size_t first = polled.size();
  for (const Stream& stream : streams_) {
    const bool is_full =
        stream.outlet != nullptr ? stream.outlet->is_full() : stream.text->size() >= kMostKept;
    polled.push_back({is_full ? -1 : stream.pipe.get(), POLLIN, 0});
  }
  const std::size_t first_input = polled.size();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    polled.push_back({untold_[i].empty() ? -1 : inputs_[i].get(), POLLOUT, 0});
  }
  if (poll(polled.data(), polled.size(), patience(deadline)) <= 0) return;
  if (polled[1].revents != 0) {
    hangup_ = -1;
    stages_.stop(Clock::now());
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (polled[first + i].revents != 0) read_some(streams_[i]);
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (polled[first_input + i].revents != 0) tell_some(i);
  }
  write_some();
}

// Milliseconds that poll() may sleep; -1: for ever.
int Launcher::patience(std::optional<Time> deadline) const {
  auto until = stages_.deadline();
  if (deadline) until = until ? std::min(*until, *deadline) : *deadline;
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    if (!stages_.leaves_others(i)) continue;
    const auto soon = Clock::now() + kGroupPause;
    until = until ? std::min(*until, soon) : soon;
  }
  if (!until) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void Launcher::read_some(Stream& stream) {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = read(stream.pipe.get(), bytes.data(), bytes.size());
  if (got > 0) {
    stream.lines.take({bytes.data(), static_cast<std::size_t>(got)}, stream.text);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    stream.lines.finish(stream.text);
    stream.pipe.reset();
  }
}

void Launcher::write_some() {
  for (LaunchOutlet& outlet : outlets_) outlet.write_some();
  // Where standard error is closed, nobody wants it.
  if (output_error_ != 0 || outlets_[0].error() == 0) return;
  output_error_ = outlets_[0].error();
  stages_.stop(Clock::now());
}

// Whether one of the user's was among them.
bool Launcher::heed_signals() {
  bool interrupted = false;
  while (const int signal = signals_.next()) {
    if (signal == SIGCHLD) continue;
    interrupted = true;
    interrupted_by_ = signal;
    stages_.on_interrupt(Clock::now());
  }
  return interrupted;
}

void Launcher::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto task = tasks_.find(pid);
    if (task == tasks_.end()) continue;  // an orphan
    const ProcessEnd end = WIFSIGNALED(status) ? ProcessEnd{true, WTERMSIG(status)}
                                               : ProcessEnd{false, WEXITSTATUS(status)};
    stages_.on_end(task->second, end, Clock::now());
    tasks_.erase(task);  // the number may be an orphan's next
  }
}

void Launcher::look_at_groups() {
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    if (!stages_.leaves_others(i) || kill(-pids_[i], 0) == 0 || errno != ESRCH) continue;
    stages_.on_group_gone(i);
    guard_.remove(pids_[i]);
  }
}

void Launcher::send_orders() {
  for (const LaunchStages::Order& order : stages_.take_orders()) {
    // One that reads its input ends what it has elsewhere in good order when that closes.
    if (order.signal == SIGTERM && inputs_[order.process].get() >= 0 &&
        !stages_.end_of(order.process)) {
      inputs_[order.process].reset();
      continue;
    }
    kill(-pids_[order.process], order.signal);
    kill(-pids_[order.process], SIGCONT);  // one that is stopped would heed no SIGTERM
  }
}

// All have ended: reads what the pipes hold. One may still be open in a session of its own, and be
// written to for ever.
void Launcher::drain() {
  for (Stream& stream : streams_) {
    for (int reads = 0; reads < kReadsOfFullPipe && stream.pipe.get() >= 0; ++reads) {
      pollfd one{.fd = stream.pipe.get(), .events = POLLIN, .revents = 0};
      if (poll(&one, 1, 0) <= 0) break;
      read_some(stream);
    }
    stream.lines.finish(stream.text);
  }
}

// As long as it takes, unless the user has seen enough.
void Launcher::write_rest() {
  while (outlets_[0].has_text() || outlets_[1].has_text()) {
    std::array<pollfd, 3> polled{pollfd{signals_.descriptor(), POLLIN, 0}};
    for (std::size_t i = 0; i < outlets_.size(); ++i) {
      polled[i + 1] = {outlets_[i].has_text() ? outlets_[i].descriptor() : -1, POLLOUT, 0};
    }
    poll(polled.data(), polled.size(), -1);
    write_some();
    if (heed_signals()) return;
  }
}

}  // namespace gradcube::cli
