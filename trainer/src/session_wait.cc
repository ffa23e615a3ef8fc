// The half of a session that listens to its daemon: completions, notices, and the daemon's end.

#include <algorithm>
#include <cstdint>
#include <poll.h>
#include <string>
#include <utility>

#include "trainer/src/result_code.h"
#include "trainer/src/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

constexpr int kInquiryMilliseconds = 200;

}  // namespace

void Session::await(Request& request, int timeout_ms, OnSignal on_signal) {
  reap();
  if (request.ended) return;
  const Stopwatch stopwatch;
  sleep_until_ended(request, Deadline::in_milliseconds(timeout_ms), on_signal);
  // At most the timeout: a late wake-up does not make it longer.
  const std::int64_t limit = timeout_ms < 0 ? INT64_MAX : timeout_ms * std::int64_t{1'000'000};
  request.waited_ns += std::min(stopwatch.nanoseconds(), limit);
}

void Session::sleep_until_ended(const Request& request, const Deadline& deadline,
                                OnSignal on_signal) {
  while (!request.ended) {
    if (deadline.passed()) {
      listen();  // so that a trainer that never sleeps learns of its daemon's death, too
      return;
    }
    if (sleeper_.spin([this] { return !completions_.empty(); })) {
      reap();
      continue;
    }
    Sleeper::Woken woken;
    completions_.set_consumer_sleeps(true);
    if (completions_.empty()) woken = sleeper_.sleep(deadline);
    completions_.set_consumer_sleeps(false);
    reap();
    if (woken.socket) listen();
    if (woken.doorbell_closed) lose_daemon();
    if (woken.by_signal && on_signal == OnSignal::stop) return;
  }
}

void Session::reap() {
  shared::Completion completion{};
  while (ring_is_sound_) {
    const CompletionRing::Pop popped = completions_.pop(completion);
    if (popped == CompletionRing::Pop::empty) break;
    const bool expected = popped == CompletionRing::Pop::entry &&
                          completion.request == next_to_complete_ &&
                          completion.request < next_number_ && is_result_code(completion.code);
    if (!expected) {
      ring_is_sound_ = false;
      lose(GRADCUBE_EPROTOCOL,
           "the daemon at " + connection_.path() +
               " wrote an invalid entry to the completion ring: open a new session");
      return;
    }
    ++next_to_complete_;
    if (Request* request = requests_.find(completion.request)) end(*request, completion.code);
    notices_.forget_before(next_to_complete_);
  }
}

void Session::end(Request& request, int code) {
  request.ended = true;  // before listen(), which may lose the session and end all that have not
  request.code = code;
  if (code == GRADCUBE_OK) return;
  listen();
  const shared::Notice* notice = notices_.about(request.number, code);
  request.message = notice != nullptr
                        ? std::string(notice->text)
                        : "request " + std::to_string(request.number) + " failed at server " +
                              admission_.welcome.server + ": " + gradcube_strerror(code);
}

void Session::listen() {
  shared::Notice notice{};
  while (lost_code_ == GRADCUBE_OK) {
    const Connection::Received received = connection_.receive(notice);
    if (received == Connection::Received::nothing) return;
    if (received == Connection::Received::closed) {
      lose_daemon();
      return;
    }
    switch (notice.type) {
      case shared::MessageType::failure:
        notices_.add(notice);
        break;
      case shared::MessageType::report:
        daemons_report_ = notice;
        break;
      case shared::MessageType::closing:
        lose(notice.code == GRADCUBE_OK ? GRADCUBE_ENODAEMON : notice.code, notice.text);
        break;
      default:
        lose_daemon();
    }
  }
}

void Session::lose_daemon() {
  lose(GRADCUBE_ENODAEMON,
       "the daemon at " + connection_.path() + ", server " + admission_.welcome.server +
           ", went away: see `gradcube status`, start again with `gradcube up`");
}

void Session::lose(int code, const std::string& message) {
  if (lost_code_ != GRADCUBE_OK) return;
  lost_code_ = code;
  lost_message_ = message;
  reap();  // a collective that completed before keeps its result
  for (Request& request : requests_.places()) {
    if (request.number == 0 || request.ended) continue;
    const shared::Notice* notice = notices_.about(request.number, code);
    request.ended = true;
    request.code = notice != nullptr && notice->code != GRADCUBE_OK ? notice->code : code;
    request.message = notice != nullptr ? std::string(notice->text) : message;
  }
  connection_.close();
  admission_.doorbell.reset();
}

// The time in the message is what the trainer waited. One that stays interruptible waits in several
// short calls, and the last of them may have a timeout of 0.
int Session::time_out(Request& request) {
  const std::int64_t waited_ms = std::exchange(request.waited_ns, 0) / 1'000'000;
  const std::string when = "not done after " + std::to_string(waited_ms) + " ms";
  listen();
  daemons_report_.reset();  // an answer to an earlier inquiry that came late says nothing about now
  connection_.send_inquiry(request.number);
  const Deadline deadline = Deadline::in_milliseconds(kInquiryMilliseconds);
  const auto answered = [&] {
    return daemons_report_.has_value() && covers(*daemons_report_, request.number);
  };
  while (lost_code_ == GRADCUBE_OK && !answered() && !deadline.passed()) {
    pollfd waiting{connection_.fd(), POLLIN, 0};
    ::poll(&waiting, 1, deadline.poll_timeout());
    listen();
  }
  reap();
  if (request.ended) return report(request);
  if (answered()) {
    return fail(GRADCUBE_ETIMEDOUT, when + ": " + daemons_report_->text);
  }
  return fail(GRADCUBE_ETIMEDOUT, "request " + std::to_string(request.number) + " is " + when +
                                      ", and the daemon at " + connection_.path() +
                                      " did not say why within " +
                                      std::to_string(kInquiryMilliseconds) + " ms");
}

}  // namespace gradcube::trainer
