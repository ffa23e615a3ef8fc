#include "cli/launch/launch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/launch_guard.h"
#include "cli/launch/launch_lines.h"
#include "cli/launch/launch_outlet.h"

namespace gradcube::cli {
namespace {

using control::Descriptor;
using Clock = std::chrono::steady_clock;

// How often it is looked whether the rest of a group has ended, of which no signal tells.
constexpr auto kGroupPause = std::chrono::milliseconds(50);
constexpr rlim_t kDescriptorsOfOthers = 64;
constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kReadsOfFullPipe = (1 << 20) / kReadBytes;

// What one process writes to one of its streams.
struct Stream {
  Descriptor pipe;
  LaunchLines lines;
  LaunchOutlet* outlet;
};

// Room for two pipes for each process. Returns the limit that they are to have.
rlimit make_room(std::size_t processes) {
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  rlimit wide = old;
  wide.rlim_cur =
      std::min<rlim_t>(old.rlim_max, std::max(old.rlim_cur, 2 * processes + kDescriptorsOfOthers));
  setrlimit(RLIMIT_NOFILE, &wide);
  return old;
}

class Launcher {
 public:
  Launcher(const LaunchSettings& settings, const LaunchSignals& signals);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void start();
  LaunchReport run();

 private:
  void wait_for_news();
  int patience() const;
  void read_some(Stream& stream);
  void write_some();
  bool heed_signals();
  void reap();
  void look_at_groups();
  void send_orders();
  void drain();
  void write_rest();

  const LaunchSettings& settings_;
  const LaunchSignals& signals_;
  LaunchGuard guard_;
  LaunchStages stages_;
  std::array<LaunchOutlet, 2> outlets_{LaunchOutlet(STDOUT_FILENO), LaunchOutlet(STDERR_FILENO)};
  std::vector<pid_t> pids_;  // by task
  std::map<pid_t, std::size_t> tasks_;
  std::vector<Stream> streams_;
  int interrupted_by_ = 0;
  int output_error_ = 0;
};

Launcher::Launcher(const LaunchSettings& settings, const LaunchSignals& signals)
    : settings_(settings), signals_(signals), stages_(settings.tasks.size(), settings.grace) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Launcher::~Launcher() {
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    if (stages_.end_of(i) && !stages_.leaves_others(i)) continue;
    kill(-pids_[i], SIGKILL);
    if (!stages_.end_of(i)) waitpid(pids_[i], nullptr, 0);
    guard_.remove(pids_[i]);
  }
}

void Launcher::start() {
  const LaunchCommand command{.file = settings_.file,
                              .words = settings_.words,
                              .descriptors = make_room(settings_.tasks.size())};
  LaunchOutlet* const errors = &outlets_[1];
  LaunchOutlet* const output = settings_.output_to_errors ? errors : &outlets_[0];
  for (const LaunchTask& task : settings_.tasks) {
    LaunchedProcess process = launch_process(command, task.environment, signals_, guard_);
    tasks_[process.pid] = pids_.size();
    pids_.push_back(process.pid);
    streams_.push_back({std::move(process.output), LaunchLines(task.mark), output});
    streams_.push_back({std::move(process.errors), LaunchLines(task.mark), errors});
  }
}

LaunchReport Launcher::run() {
  while (!stages_.all_gone()) {
    wait_for_news();
    heed_signals();
    reap();
    look_at_groups();
    stages_.on_time(Clock::now());
    send_orders();
  }
  drain();
  write_rest();
  LaunchReport report{.ends = {},
                      .killed = {},
                      .first_failure = stages_.first_failure(),
                      .exit_code = stages_.exit_code(),
                      .interrupted_by = interrupted_by_,
                      .output_error = output_error_};
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    report.ends.push_back(*stages_.end_of(i));
    if (stages_.outstayed(i)) report.killed.push_back(i);
  }
  return report;
}

// Sleeps until something has happened, and passes on what has been written.
void Launcher::wait_for_news() {
  std::vector<pollfd> polled{{signals_.descriptor(), POLLIN, 0}};
  for (const LaunchOutlet& outlet : outlets_) {
    // Poll skips a negative number.
    polled.push_back({outlet.has_text() ? outlet.descriptor() : -1, POLLOUT, 0});
  }
  const std::size_t first = polled.size();
  for (const Stream& stream : streams_) {
    polled.push_back({stream.outlet->is_full() ? -1 : stream.pipe.get(), POLLIN, 0});
  }
  if (poll(polled.data(), polled.size(), patience()) <= 0) return;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (polled[first + i].revents != 0) read_some(streams_[i]);
  }
  write_some();
}

// Milliseconds that poll() may sleep; -1: for ever.
int Launcher::patience() const {
  auto until = stages_.deadline();
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
    stream.lines.take({bytes.data(), static_cast<std::size_t>(got)}, stream.outlet->text());
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    stream.lines.finish(stream.outlet->text());
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
    stream.lines.finish(stream.outlet->text());
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

}  // namespace

LaunchReport launch(const LaunchSettings& settings, const LaunchSignals& signals) {
  Launcher launcher(settings, signals);
  launcher.start();
  return launcher.run();
}

}  // namespace gradcube::cli
