#include "dataplane/poller.h"

#include <algorithm>
#include <chrono>
#include <rte_pause.h>
#include <sched.h>
#include <sys/epoll.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "control/errors.h"

namespace gradcube::dataplane {

namespace {

constexpr std::int64_t kSpin = 20'000;              // ns of idle turns before yielding
constexpr std::int64_t kIdleBeforeSleep = 200'000;  // ns
constexpr std::int64_t kLongestSleep = 100'000'000;
constexpr std::int64_t kShortestSleep =
    50'000;  // below this the switch to sleep costs more than it gives back
constexpr std::int64_t kStall = 1'000'000;
constexpr auto kAnswerWithin = std::chrono::minutes(1);

}  // namespace

Poller::Poller(Clock& clock, control::Idle idle) : clock_(clock), idle_mode_(idle) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot create an epoll set");
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, doorbell_.descriptor(), &event);
}

Poller::~Poller() { close(epoll_); }

void Poller::watch(Session& session) {
  sessions_.push_back(&session);
  epoll_event event{};
  event.events =
      EPOLLIN | EPOLLET;  // a trainer that has closed its end wakes us once, not for ever
  epoll_ctl(epoll_, EPOLL_CTL_ADD, session.doorbell(), &event);
}

void Poller::unwatch(Session& session) {
  std::erase(sessions_, &session);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, session.doorbell(), nullptr);
}

unsigned Poller::turn() {
  const std::int64_t now = clock_.now();
  if (last_turn_ != 0 && now - last_turn_ > kStall && clock_.reader_may_stall()) {
    stalls_.add(1);
    stalled_ += now - last_turn_ - kStall;
  }
  last_turn_ = now;
  unsigned moved = 0;
  for (SwitchShard* shard : shards_) moved += shard->poll(now);
  for (Engine* engine : engines_) moved += engine->poll(now - stalled_);
  return moved;
}

void Poller::run() {
  announce_run();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (turn() != 0) {
      idle_since_ = 0;
    } else {
      idle(last_turn_);
    }
    serve_call();
  }
  running_.store(false);
  serve_call();
}

void Poller::stop() {
  stop_.store(true);
  doorbell_.ring();
}

void Poller::idle(std::int64_t now) {
  if (idle_mode_ == control::Idle::spin) {
    rte_pause();
    return;
  }
  if (idle_since_ == 0) idle_since_ = now;
  const std::int64_t idle_for = now - idle_since_;
  if (idle_for < kSpin) {
    rte_pause();
  } else if (idle_for < kIdleBeforeSleep || !may_sleep()) {
    sched_yield();
  } else {
    sleep(now);
  }
}

bool Poller::may_sleep() const {
  return std::none_of(engines_.begin(), engines_.end(),
                      [](const Engine* engine) { return engine->busy(); });
}

std::int64_t Poller::next_event() const {
  std::int64_t next = kNever;
  for (const SwitchShard* shard : shards_) next = std::min(next, shard->next_event());
  return next;
}

void Poller::sleep(std::int64_t now) {
  const std::int64_t soon = next_event();
  if (soon != kNever && soon - now < kShortestSleep) return;

  // Tell everybody who may wake us, then look once more: whoever missed the word has left something
  // to be seen. What that look has begun (a frame on a wire) decides how long the sleep may be.
  doorbell_.announce_sleep();
  for (Session* session : sessions_) session->set_asleep(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (turn() == 0 && requested_.load() == nullptr && !stop_.load()) {
    const std::int64_t next = next_event();
    const std::int64_t most =
        next == kNever ? kLongestSleep : std::clamp<std::int64_t>(next - now, 0, kLongestSleep);
    const timespec wait{most / 1'000'000'000, most % 1'000'000'000};
    epoll_event events[8];
    epoll_pwait2(epoll_, events, 8, &wait, nullptr);
    last_turn_ = 0;  // having slept is no stall
  }
  doorbell_.answer();
  for (Session* session : sessions_) {
    session->set_asleep(false);
    session->drain_doorbell();
  }
  idle_since_ = 0;
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
    function();
    return;
  }
  const std::uint64_t before = served_.load(std::memory_order_relaxed);
  requested_.store(&function, std::memory_order_release);
  doorbell_.ring();
  const auto deadline = std::chrono::steady_clock::now() + kAnswerWithin;
  while (served_.load(std::memory_order_acquire) == before) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    // Past the deadline the request is taken back, unless the poller has taken it already: then it
    // will be done.
    if (std::chrono::steady_clock::now() > deadline && requested_.exchange(nullptr) != nullptr) {
      throw control::SetupError(
          "a poller has not answered for a minute: its core is taken, see `gradcube status`");
    }
  }
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace gradcube::dataplane
