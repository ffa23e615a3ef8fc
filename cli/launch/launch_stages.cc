#include "cli/launch/launch_stages.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace gradcube::cli {
namespace {

constexpr auto kLastPatience = std::chrono::seconds(2);

}  // namespace

LaunchStages::LaunchStages(std::size_t processes, std::chrono::nanoseconds grace, bool each_alone)
    : grace_(grace), each_alone_(each_alone), processes_(processes) {}

void LaunchStages::on_end(std::size_t process, ProcessEnd end, Time now) {
  processes_[process].end = end;
  if (stopping_) return;
  if (end.failed() && !first_failure_) first_failure_ = process;
  if (!end.failed() || each_alone_) return ask(process, now);
  stop(now);
}

void LaunchStages::on_group_gone(std::size_t process) { processes_[process].group_gone = true; }

void LaunchStages::stop(Time now) {
  stopping_ = true;
  for (std::size_t i = 0; i < processes_.size(); ++i) ask(i, now);
}

void LaunchStages::on_interrupt(Time now) {
  if (!stopping_) return stop(now);
  for (std::size_t i = 0; i < processes_.size(); ++i) kill(i, now);
}

void LaunchStages::on_time(Time now) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& one = processes_[i];
    if (one.signalled == Signalled::never || now < one.deadline) continue;
    if (one.signalled == Signalled::asked) {
      one.outstayed = !one.group_gone;
      kill(i, now);
    } else {
      if (!one.end) one.end = ProcessEnd{.by_signal = true, .number = SIGKILL};
      one.group_gone = true;
    }
  }
}

std::vector<LaunchStages::Order> LaunchStages::take_orders() {
  // The number of a group that is gone may have got another meaning.
  std::erase_if(orders_,
                [this](const Order& order) { return processes_[order.process].group_gone; });
  return std::exchange(orders_, {});
}

std::optional<LaunchStages::Time> LaunchStages::deadline() const {
  std::optional<Time> first;
  for (const Process& process : processes_) {
    if (process.signalled == Signalled::never || process.group_gone) continue;
    first = first ? std::min(*first, process.deadline) : process.deadline;
  }
  return first;
}

bool LaunchStages::all_gone() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.end && process.group_gone; });
}

bool LaunchStages::leaves_others(std::size_t process) const {
  return processes_[process].end && !processes_[process].group_gone;
}

int LaunchStages::exit_code() const {
  return first_failure_ ? processes_[*first_failure_].end->exit_code() : 0;
}

void LaunchStages::ask(std::size_t process, Time now) {
  Process& one = processes_[process];
  if (one.group_gone || one.signalled != Signalled::never) return;
  one.signalled = Signalled::asked;
  one.deadline = now + grace_;
  orders_.push_back({process, SIGTERM});
}

void LaunchStages::kill(std::size_t process, Time now) {
  Process& one = processes_[process];
  if (one.group_gone || one.signalled == Signalled::killed) return;
  one.signalled = Signalled::killed;
  one.deadline = now + kLastPatience;
  orders_.push_back({process, SIGKILL});
}

}  // namespace gradcube::cli
