#include "dataplane/host/poller.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <poll.h>
#include <rte_pause.h>
#include <sched.h>
#include <string>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace gradcube::dataplane {

namespace {

// To fall asleep between two submissions of a collective, and to be woken by each, costs more than
// to yield. To yield for long keeps the core from others (docs/performance.md).
constexpr Nanoseconds kIdleBeforeSleep = 40'000;
// How late the kernel may end a sleep; its default is as long as the shortest sleep.
constexpr unsigned long kTimerSlack = 1'000;
constexpr Nanoseconds kStall = 1'000'000;
// A longer time between two looks at a call means that the caller itself did not run.
constexpr Nanoseconds kLongestLook = 100'000'000;

[[noreturn]] void end_process(Nanoseconds patience) {
  const std::string message =
      "gradcubed ends: a poller did not respond for " + std::to_string(patience / 1'000'000) +
      " ms. Its core is taken by another process, or it hangs. Give the daemon other cores "
      "(--lcores) and start it again.\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  _exit(Poller::kStuckExitCode);
}

}  // namespace

Poller::Poller(Clock& clock, control::Idle idle, Nanoseconds call_patience,
               Nanoseconds longest_sleep)
    : clock_(clock),
      idle_mode_(idle),
      call_patience_(call_patience),
      longest_sleep_(longest_sleep),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot create an epoll set");
  }
  try {
    add_to_epoll(doorbell_.descriptor(), EPOLLIN);
  } catch (...) {
    close(epoll_);
    throw;
  }
}

Poller::~Poller() { close(epoll_); }

void Poller::add(Pollable& pollable, TimeBase time) {
  (time == TimeBase::clock ? clocked_ : attended_).push_back(&pollable);
}

void Poller::remove(Pollable& pollable) {
  std::erase(clocked_, &pollable);
  std::erase(attended_, &pollable);
}

void Poller::add_to_epoll(int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "a poller cannot watch a descriptor");
  }
}

void Poller::watch(int descriptor) { add_to_epoll(descriptor, EPOLLIN | EPOLLET); }

void Poller::unwatch(int descriptor) { epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }

Nanoseconds Poller::read_clock() {
  const Nanoseconds now = clock_.now();
  if (last_read_ != 0 && now - last_read_ > kStall && clock_.reader_may_stall()) {
    stalls_.add(1);
    stalled_ += now - last_read_ - kStall;
  }
  last_read_ = now;
  return now;
}

unsigned Poller::iterate() {
  Nanoseconds now = read_clock();
  unsigned moved = 0;
  for (Pollable* pollable : clocked_) moved += pollable->poll(now);
  // To look at all of them costs a small part of moving as many packets.
  const std::size_t worth_a_look = clocked_.size() + attended_.size();
  unsigned at_last_look = moved;
  for (Pollable* pollable : attended_) {
    moved += pollable->poll(now - stalled_);
    if (moved - at_last_look < worth_a_look || !urgency_.any(now - stalled_)) continue;
    now = read_clock();  // else what goes forth and back would seem to take no time
    moved += poll_urgent(now);
    at_last_look = moved;
  }
  return moved;
}

unsigned Poller::poll_urgent(Nanoseconds now) {
  unsigned moved = 0;
  for (Pollable* pollable : clocked_) moved += pollable->poll_urgent(now);
  for (Pollable* pollable : attended_) moved += pollable->poll_urgent(now - stalled_);
  return moved;
}

void Poller::announce_run() {
  ended_.store(false);
  running_.store(true);
}

int Poller::run_at(void* poller) {
  static_cast<Poller*>(poller)->run();
  return 0;
}

void Poller::run() {
  announce_run();
  prctl(PR_SET_TIMERSLACK, kTimerSlack);
  while (!stop_.load(std::memory_order_relaxed)) {
    if (iterate() != 0) {
      idle_since_ = 0;
    } else {
      idle(last_read_);
    }
    serve_call();
  }
  running_.store(false);
  serve_call();
  ended_.store(true, std::memory_order_release);
}

void Poller::stop() {
  stop_.store(true);
  doorbell_.ring();
}

void Poller::idle(Nanoseconds now) {
  if (idle_mode_ == control::Idle::spin) {
    rte_pause();
    return;
  }
  if (idle_since_ == 0) idle_since_ = now;
  const Nanoseconds idle_for = now - idle_since_;
  if (idle_for < kIdleBeforeSleep) {
    sched_yield();
  } else {
    sleep(now);
  }
}

Nanoseconds Poller::next_event() const {
  Nanoseconds next = kNever;
  for (const Pollable* pollable : clocked_) next = std::min(next, pollable->next_event());
  for (const Pollable* pollable : attended_) {
    const Nanoseconds due = pollable->next_event();
    if (due != kNever) next = std::min(next, due + stalled_);
  }
  return next;
}

void Poller::sleep(Nanoseconds now) {
  const Nanoseconds soon = next_event();
  if (soon != kNever && soon - now < kShortestSleep) {
    sched_yield();
    return;
  }

  prepare_wait();
  bool came = true;
  // What this look begins (a frame on a wire) decides how long the sleep may be.
  if (iterate() == 0 && requested_.load() == nullptr && !stop_.load()) {
    const Nanoseconds next = next_event();
    const Nanoseconds most = next == kNever
                                 ? longest_sleep_
                                 : std::clamp<Nanoseconds>(next - last_read_, 0, longest_sleep_);
    came = wait_for_ring(most);
    last_read_ = 0;  // having slept is no stall
  }
  finish_wait();
  // Who wakes because the time has come, and finds nothing, sleeps again without another pause.
  if (came) idle_since_ = 0;
}

void Poller::prepare_wait() {
  doorbell_.prepare_wait();
  for (Pollable* pollable : clocked_) pollable->prepare_wait();
  for (Pollable* pollable : attended_) pollable->prepare_wait();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// epoll_wait() has milliseconds only, and a kernel before 5.11 has no epoll_pwait2().
bool Poller::wait_for_ring(Nanoseconds most) {
  const timespec wait{most / 1'000'000'000, most % 1'000'000'000};
  epoll_event events[8];
  const int came = epoll_pwait2(epoll_, events, 8, &wait, nullptr);
  if (came >= 0 || errno != ENOSYS) return came > 0;
  pollfd readable{epoll_, POLLIN, 0};
  if (ppoll(&readable, 1, &wait, nullptr) <= 0) return false;
  // Edge-triggered descriptors stay ready until their events are taken.
  return epoll_wait(epoll_, events, 8, 0) > 0;
}

void Poller::finish_wait() {
  doorbell_.finish_wait();
  for (Pollable* pollable : clocked_) pollable->finish_wait();
  for (Pollable* pollable : attended_) pollable->finish_wait();
}

void Poller::serve_call() {
  const std::function<void()>* function = requested_.exchange(nullptr, std::memory_order_acquire);
  if (function == nullptr) return;
  failure_ = nullptr;
  try {
    (*function)();
  } catch (...) {
    failure_ = std::current_exception();
  }
  served_.fetch_add(1, std::memory_order_release);
}

void Poller::call(const std::function<void()>& function) {
  if (!running_.load()) {
    if (meanwhile_) meanwhile_();
    function();
    doorbell_.ring();
    return;
  }
  const std::uint64_t before = served_.load(std::memory_order_relaxed);
  requested_.store(&function, std::memory_order_release);
  doorbell_.ring();
  const auto served = [&] { return served_.load(std::memory_order_acquire) != before; };
  wait_until([&] { return served() || has_ended(); });
  // run() may have ended between the look at running_ and the request.
  if (!served()) serve_call();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void Poller::await_end() {
  wait_until([this] { return has_ended(); });
}

void Poller::wait_until(const std::function<bool()>& done) {
  Nanoseconds last_look = clock_.now();
  Nanoseconds waited = 0;
  while (!done()) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    const Nanoseconds now = clock_.now();
    waited += std::min(now - last_look, kLongestLook);
    last_look = now;
    if (waited > call_patience_) end_process(call_patience_);
  }
}

}  // namespace gradcube::dataplane
