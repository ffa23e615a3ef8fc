// The half of a session that waits: for the end of a request, and for the daemon's word on why it
// does not come.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "trainer/src/session/patience.h"
#include "trainer/src/session/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

int Session::event_fd() {
  const Lock lock = enter();
  if (!events_.has_value()) {
    events_.emplace(admission_.doorbell.get(), connection_.fd());
    // From now on the daemon always rings. What it published before has not rung.
    completions_.set_consumer_sleeps(true);
    reap();
  }
  return events_->fd();
}

int Session::poll(std::uint64_t number, int timeout_ms, int& done) {
  done = 0;
  Lock lock = enter();
  Request* request = await(lock, number, timeout_ms, OnSignal::stop);
  if (request == nullptr) return unknown(number);
  if (!request->ended) return GRADCUBE_OK;
  done = 1;
  return report(lock, *request);
}

int Session::wait(std::uint64_t number, int timeout_ms) {
  Lock lock = enter();
  Request* request = await(lock, number, timeout_ms, OnSignal::go_on);
  if (request == nullptr) return unknown(number);
  return request->ended ? report(lock, *request) : time_out(lock, *request);
}

// Returns the request; null if there is none (any more).
Request* Session::await(Lock& lock, std::uint64_t number, int timeout_ms, OnSignal on_signal) {
  Request* request = requests_.find(number);
  if (request != nullptr && request->ended) return request;
  request = look_for(number);
  if (request != nullptr && request->ended) return request;  // report() updates the events
  update_events();
  if (request == nullptr) return nullptr;
  if (timeout_ms == 0) {
    // So that a trainer that never sleeps learns of its daemon's death, too.
    if (!events_.has_value()) listen();
    return request;
  }
  const Stopwatch stopwatch;
  {
    Waiters::Waiter waiter(waiters_, Waiters::For::end, number);
    sleep(lock, waiter, Deadline::in_milliseconds(timeout_ms), on_signal);
  }
  request = requests_.find(number);  // another thread may have reported its end
  if (request == nullptr) return nullptr;
  // At most the timeout: a late wake-up does not make it longer.
  const std::int64_t limit = timeout_ms < 0 ? INT64_MAX : timeout_ms * std::int64_t{1'000'000};
  request->waited_ns += std::min(stopwatch.nanoseconds(), limit);
  return request;
}

bool Session::is_served(const Waiters::Waiter& waiter) {
  using For = Waiters::For;
  if (waiter.what == For::memory) return !growing_;
  if (waiter.what == For::confirmation) return !reported_ || lost_code_ != GRADCUBE_OK;
  if (waiter.what == For::hub) return hub_->is_answered() || lost_code_ != GRADCUBE_OK;
  const Request* request = requests_.find(waiter.request);
  return request == nullptr || request->ended ||
         (waiter.what == For::report && request->report.has_value());
}

void Session::await_hub(Lock& lock, const Deadline& deadline) {
  Waiters::Waiter waiter(waiters_, Waiters::For::hub);
  sleep(lock, waiter, deadline, OnSignal::go_on);
}

// Until the waiter is served, the deadline has passed, or a signal stops it.
void Session::sleep(Lock& lock, Waiters::Waiter& waiter, const Deadline& deadline,
                    OnSignal on_signal) {
  while (!is_served(waiter)) {
    if (deadline.passed()) {
      listen();  // as in await()
      return;
    }
    if (!waiter.leads()) {
      waiter.follow(lock, deadline);
    } else if (lead(lock, waiter, deadline) && on_signal == OnSignal::stop) {
      return;
    }
  }
}

// Sleeps once for all waiters. True when a signal ended it.
bool Session::lead(Lock& lock, const Waiters::Waiter& waiter, const Deadline& deadline) {
  lock.unlock();
  const bool arrived = sleeper_.spin([this] { return !completions_.empty(); });
  lock = enter();
  reap();
  if (arrived || is_served(waiter)) return false;

  Sleeper::Woken woken;
  completions_.set_consumer_sleeps(true);
  if (completions_.empty()) {
    leader_sleeps_ = true;
    lock.unlock();
    woken = sleeper_.sleep(deadline);
    lock = enter();
    leader_sleeps_ = false;
  }
  if (!events_.has_value()) completions_.set_consumer_sleeps(false);
  reap();
  if (woken.socket) listen();
  if (woken.doorbell_closed) lose_daemon();
  return woken.by_signal;
}

// The time in the message is what the trainer waited. One that stays interruptible waits in several
// short calls, and the last of them may have a timeout of 0. One with an event loop waits all the
// time.
int Session::time_out(Lock& lock, Request& late) {
  const std::uint64_t number = late.number;
  std::int64_t waited_ns = std::exchange(late.waited_ns, 0);
  if (late.in_flight.has_value()) {
    waited_ns = std::exchange(late.in_flight, Stopwatch())->nanoseconds();
  }
  const std::int64_t waited_ms = waited_ns / 1'000'000;
  late.report.reset();  // the answer to an earlier inquiry says nothing about now
  shared::Inquiry inquiry{.request = number, .number = late.number_in_lane};
  if (late.wanted.push.has_value()) {
    inquiry.lane = shared::kHubLane;
    inquiry.number = late.collective.submission.push.key;
  } else if (late.collective.is_in_lane()) {
    inquiry.lane = late.collective.submission.collective.lane;
  }
  connection_.tell(inquiry);
  {
    Waiters::Waiter waiter(waiters_, Waiters::For::report, number);
    sleep(lock, waiter, Deadline::in_milliseconds(kInquiryMilliseconds), OnSignal::go_on);
  }
  Request* request = look_for(number);
  if (request != nullptr && request->ended) return report(lock, *request);
  update_events();
  if (request == nullptr) return unknown(number);
  // What has no text is still not done, and its memory is the daemon's.
  return fail(GRADCUBE_ETIMEDOUT, text_if_any([&] { return why_late(*request, waited_ms); }));
}

std::string Session::why_late(const Request& request, std::int64_t waited_ms) const {
  std::string what;
  if (request.collective.is_message()) what = text_of_message(request.collective) + " is ";
  if (request.wanted.push.has_value()) what = hub_->text_of_push(request) + " is ";
  const std::string when = what + "not done after " + std::to_string(waited_ms) + " ms";
  if (request.report.has_value()) return when + ": " + *request.report;
  return (what.empty() ? "request " + std::to_string(request.number) + " is " : "") + when +
         ", and the daemon at " + connection_.path() + " did not say why within " +
         std::to_string(kInquiryMilliseconds) + " ms";
}

}  // namespace gradcube::trainer
