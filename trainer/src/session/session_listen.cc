// The half of a session that listens to its daemon: completions, notices, and the daemon's end.

#include <new>
#include <string>
#include <sys/socket.h>
#include <utility>

#include "trainer/src/connection/packet.h"
#include "trainer/src/session/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

namespace {

// Explains whatever came of an abort.
constexpr const char* kAborted = "gradcube_abort() ended this trainer's job: open a new session";

}  // namespace

// What takes completions and notices throws nothing: it works for all that wait, and none of them
// could tell a failure of it from one of its own request. A text that there is no memory for is
// left out.
//
// Takes what has come, and returns the request. Where an event descriptor was given out, this is
// also what makes it unreadable: the doorbell is silenced before the rings are looked at, so a ring
// that comes after is heard. Where this request has ended, messages of the daemon wait for the next
// call: the socket keeps the descriptor readable. The caller updates the events before it releases
// the mutex.
Request* Session::look_for(std::uint64_t number) {
  const bool open = !events_.has_value() || sleeper_.silence_doorbell();
  take_ends();
  Request* request = requests_.find(number);
  if (open && request != nullptr && request->ended) return request;
  if (events_.has_value()) listen();
  if (!open) lose_daemon();
  return requests_.find(number);
}

void Session::reap() {
  take_ends();
  update_events();
}

void Session::take_ends() {
  const std::size_t before = unreported_ends_;
  shared::Completion completion{};
  while (ring_is_open_) {
    const CompletionRing::Pop popped = completions_.pop(completion);
    if (popped == CompletionRing::Pop::empty) break;
    if (popped == CompletionRing::Pop::corrupt) {
      lose_ring("an invalid tail to the completion ring");
    } else {
      take(completion);
    }
  }
  if (unreported_ends_ == before) return;
  end_abandoned();
  call_served();
}

void Session::take(const shared::Completion& completion) {
  Request* request = requests_.find(completion.request);
  const bool fits = request != nullptr && !request->ended && is_result_code(completion.code) &&
                    (completion.code != GRADCUBE_OK || !request->collective.is_receive() ||
                     completion.bytes <= request->collective.bytes) &&
                    (completion.code != GRADCUBE_ECANCELED || request->withdrawn);
  if (!fits) {
    lose_ring("an invalid entry to the completion ring");
    return;
  }
  request->message_bytes = completion.bytes;
  if (request->collective.is_receive()) request->collective.output.bytes = completion.bytes;
  const bool failed = completion.code != GRADCUBE_OK;
  // Before listen(), which may lose the session and end all that have not ended.
  end(*request, failed && aborted_ ? GRADCUBE_EABORTED : completion.code);
  if (failed) request->message = text_if_any([&] { return why_failed(*request, completion); });
}

std::string Session::why_failed(const Request& request, const shared::Completion& completion) {
  if (request.code == GRADCUBE_EABORTED) return kAborted;
  if (completion.code == GRADCUBE_EMISMATCH && request.collective.is_message()) {
    return why_unfitting(request, completion.notice);
  }
  if (completion.code == GRADCUBE_ECANCELED) {
    return text_of_message(request.collective) + " in job \"" + job_ +
           "\" was withdrawn before it met the other trainer's: it has " +
           (request.collective.is_send() ? "given" : "taken") + " nothing";
  }
  // What a message can be wrong in was checked at its submission, but not where its peer is.
  if (completion.code == GRADCUBE_EINVAL && request.collective.is_message()) {
    return why_too_far(request);
  }
  if (notices_.text_of(completion.notice) == nullptr) listen();
  const std::string* text = notices_.text_of(completion.notice);
  return text != nullptr
             ? *text
             : "request " + std::to_string(request.number) + " failed at server " +
                   admission_.welcome.server + ": " + gradcube_strerror(completion.code);
}

// other_dtype: one more than the other trainer's, where the two differ: shared::Completion.
std::string Session::why_unfitting(const Request& request, std::uint32_t other_dtype) const {
  const Collective& message = request.collective;
  std::string why = message.is_send()
                        ? "it is longer than the buffer of its receive"
                        : "the message has " + std::to_string(request.message_bytes) + " bytes";
  if (other_dtype != 0) {
    const std::string own = type_name(message.submission.dtype);
    const std::string other = type_name(static_cast<int>(other_dtype - 1));
    why = "rank " + std::to_string(message.submission.message.peer) +
          (message.is_send() ? " receives " : " sends ") + other + ", and this trainer " +
          (message.is_send() ? "sends " : "receives ") + own;
  }
  return text_of_message(message) + " in job \"" + job_ + "\" failed: " + why +
         "; nothing was transferred";
}

std::string Session::why_too_far(const Request& request) const {
  return text_of_message(request.collective) + " in job \"" + job_ +
         "\" failed: the two servers are farther apart than the 8 hops that a frame may take; let "
         "a trainer between them pass it on";
}

void Session::end(Request& request, int code) {
  request.ended = true;
  request.code = code;
  --in_flight_;
  ++unreported_ends_;
}

void Session::update_events() {
  if (!events_.has_value()) return;
  events_->set_unreported(unreported_ends_ != 0);
  events_->set_in_flight(in_flight_ != 0);
}

void Session::call_served() {
  const bool leader_is_served =
      waiters_.call_if([this](const Waiters::Waiter& waiter) { return is_served(waiter); });
  if (leader_is_served && leader_sleeps_) sleeper_.wake();
}

void Session::listen() {
  shared::Notice notice{};
  while (lost_code_ == GRADCUBE_OK) {
    Packet packet;
    const Received received = receive_packet(connection_.fd(), packet);
    if (received == Received::nothing) return;
    // To a daemon whose notices are malformed the session listens no more.
    if (received == Received::closed || !read_notice(packet, notice)) {
      lose_daemon();
      return;
    }
    try {
      hear(notice, std::move(packet.descriptor));
    } catch (const std::bad_alloc&) {
      // It has no text, then.
    }
  }
}

void Session::hear(const shared::Notice& notice, Descriptor descriptor) {
  switch (notice.type) {
    case shared::MessageType::failure:
      notices_.add(notice);
      break;
    case shared::MessageType::report:
      if (Request* request = requests_.find(notice.request); request != nullptr) {
        request->report = notice.text;
        call_served();
      }
      break;
    case shared::MessageType::grown:
      take_confirmation(notice);
      break;
    case shared::MessageType::hub_made:
      hub_->take_hub(notice, std::move(descriptor));
      break;
    case shared::MessageType::closing:
      lose(notice.code == GRADCUBE_OK ? GRADCUBE_ENODAEMON : notice.code,
           text_if_any([&] { return std::string(notice.text); }));
      break;
    default:
      lose_daemon();
  }
}

void Session::lose_daemon() {
  hub_->keep_shown();  // it may go on: a trainer that reads no notices is not told so
  lose(GRADCUBE_ENODAEMON, text_if_any([this] {
         return "the daemon at " + connection_.path() + ", server " + admission_.welcome.server +
                ", went away: see `gradcube status`; `gradcube down`, then `gradcube up`, starts "
                "again";
       }));
}

void Session::lose_ring(const char* what) {
  ring_is_open_ = false;
  lose(GRADCUBE_EPROTOCOL, text_if_any([&] {
         return "the daemon at " + connection_.path() + " wrote " + what + ": open a new session";
       }));
}

void Session::lose(int code, std::string message) {
  if (lost_code_ != GRADCUBE_OK) return;
  lost_code_ = aborted_ ? GRADCUBE_EABORTED : code;
  lost_message_ = aborted_ ? text_if_any([] { return std::string(kAborted); }) : std::move(message);
  reap();  // a collective that completed before keeps its result
  ring_is_open_ = false;
  // Its buffers are about to be the trainer's again, and the daemon may go on with them: others get
  // what was submitted, whatever is written there then.
  if (in_flight_ != 0 && !region_.part_heap(heap_.usable())) {
    // Who touches it ends with no lock, and no other thread begins to before this one has ended.
    for (unsigned touch = touching_; touch != 0; touch = touching_) touching_.wait(touch);
    PrivateInChild::between_forks([this] { region_.give_up_heap(heap_.usable()); });
  }
  requests_.for_each_listed([this](Request& request) {
    if (!request.ended) end(request, lost_code_);  // report() says lost_message_
  });
  update_events();
  // A daemon that ends leaves trainers what they map; one that goes on takes it back when this
  // socket is shut down.
  if (lost_code_ != GRADCUBE_ENODAEMON) hub_->keep_shown();
  connection_.shut_down();
  ::shutdown(admission_.doorbell.get(), SHUT_RDWR);
  call_served();
  end_abandoned();
  update_events();
}

}  // namespace gradcube::trainer
