// How a hub is pushed to, and read.

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "control/checkpoint/checkpoint_header.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/hub/hub_client.h"

namespace gradcube::trainer {

using shared::is_of_plane;
using shared::PushKind;

namespace {

// Counts a thread while it lives, also where what the thread does fails for want of memory. Made
// with the lock; ends with it.
class Counted {
 public:
  Counted(Session::Lock& lock, unsigned& count) : lock_(lock), count_(count) { ++count_; }
  ~Counted() {
    if (!lock_.owns_lock()) lock_.lock();
    --count_;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Session::Lock& lock_;
  unsigned& count_;
};

std::uint32_t scale_bits(double scale) {
  if (!shared::is_scale(scale)) return 0;  // it is refused
  return std::bit_cast<std::uint32_t>(static_cast<float>(scale) + 0.0F);
}

// Without the lock: a key may have gigabytes.
shared::SubmittedPush submitted_push(const Hub& hub, const PushWish& wish) {
  shared::SubmittedPush push{};
  push.hub = hub.number();
  push.kind = static_cast<std::uint8_t>(wish.kind);
  push.plane = static_cast<std::uint8_t>(wish.plane);
  if (shared::has_rate(wish.kind)) push.rate = wish.rate;
  if (wish.kind == PushKind::applied) push.digest = scale_bits(wish.scale);
  if (wish.kind == PushKind::restored) push.steps = wish.steps;
  if (wish.kind == PushKind::loaded && wish.has_plane) push.steps = wish.steps + 1;
  if (wish.kind != PushKind::weights || wish.key >= hub.size() || wish.buffer == nullptr) {
    return push;
  }
  push.digest = static_cast<std::uint32_t>(control::checkpoint_checksum(
      {static_cast<const std::uint8_t*>(wish.buffer), hub.key(wish.key).bytes}));
  return push;
}

constexpr const char* kNoAccumulation =
    "the hub does not accumulate: make it with gradcube_hub_settings.accumulate";

std::string number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

// Of the numbers, and of what the hub can do.
std::string problem_of(const Hub& hub, const PushWish& wish) {
  if (shared::accumulates(wish.kind)) {
    if (!hub.accumulates()) return kNoAccumulation;
    if (!shared::is_scale(wish.scale)) {
      return "the scale is " + number_text(wish.scale) +
             ": expected a finite number of float32, 0 or more";
    }
  }
  if (wish.rate == GRADCUBE_HUB_RATE) return "";
  if (shared::is_learning_rate(wish.rate, hub.has_aggregator())) return "";
  return "the learning rate is " + number_text(wish.rate) + ": expected a finite number" +
         (hub.has_aggregator() ? " of float32" : "") + ", 0 or more, or GRADCUBE_HUB_RATE";
}

std::size_t bytes_of(const Hub& hub, const PushWish& wish) {
  const Hub::Key& key = hub.key(wish.key);
  if (wish.kind == PushKind::applied) return 0;
  return wish.kind == PushKind::restored ? hub.bytes_to_restore(key) : key.bytes;
}

}  // namespace

std::uint64_t HubClient::steps_after(const Hub& hub, const Hub::Key& key,
                                     const PushWish& wish) const {
  switch (wish.kind) {
    case PushKind::gradients:
      return key.steps + (hub.is_asynchronous() ? session_.place().size / session_.trainers() : 1);
    case PushKind::applied:
      return key.steps + (wish.scale == 0 ? 0 : 1);
    case PushKind::saved:
    case PushKind::accumulated:
      return key.steps;
    default:
      return wish.steps;  // 0 of weights
  }
}

// Where other threads copy the key's weights. No more begin meanwhile, so it ends by itself.
void HubClient::await_pulls(Session::Lock& lock, Hub& hub, std::size_t place) {
  if (place >= hub.size()) return;
  Hub::Key& key = hub.key(place);
  const Counted waiting(lock, key.waiting);
  while (key.pulls != 0) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock = session_.enter();
  }
}

// With the lock.
int HubClient::may_push(const Hub& hub, const PushWish& wish) {
  if (session_.lost_code() != GRADCUBE_OK) return fail_as_lost();
  session_.reap();
  if (wish.key >= hub.size()) return no_key(hub, wish.key);
  const Hub::Key& key = hub.key(wish.key);
  if (wish.buffer == nullptr && wish.kind != PushKind::applied) {
    return fail(GRADCUBE_EINVAL, "what is pushed is NULL");
  }
  if (const std::string problem = problem_of(hub, wish); !problem.empty()) {
    return fail(GRADCUBE_EINVAL, problem);
  }
  if (const int code = fail_if_ended(hub); code != GRADCUBE_OK) return code;
  if (const int code = fail_if_torn(hub); code != GRADCUBE_OK) return code;
  const bool trains = shared::has_gradients(wish.kind) || wish.kind == PushKind::applied;
  if (trains && !key.pushed && !key.has_weights) return no_weights(hub, key);
  if (key.pushed || (hub.copies && !is_of_plane(wish.kind))) {
    return fail(GRADCUBE_EAGAIN, "key " + in_quotes(key.name) + " of the hub is being " +
                                     (key.pushed ? "pushed: wait for its request first"
                                                 : "copied for a checkpoint by another thread"));
  }
  if (wish.kind == PushKind::applied && !key.squares.has_value()) return nothing(key);
  const std::size_t bytes = bytes_of(hub, wish);
  if (bytes <= session_.heap_bytes()) return GRADCUBE_OK;
  return fail(GRADCUBE_EINVAL, "key " + in_quotes(key.name) + " has " + std::to_string(bytes) +
                                   " bytes, and the shared heap " +
                                   std::to_string(session_.heap_bytes()) +
                                   ": set GRADCUBE_HEAP to more");
}

int HubClient::push(Hub& hub, const PushWish& wish, std::uint64_t& number) {
  Session::Lock lock = session_.enter();
  if (hub.is_being_freed) return is_being_freed();
  const Counted use(lock, hub.uses);
  shared::SubmittedPush submitted{};
  const int code =
      session_.touch(lock, wish.buffer, [&] { submitted = submitted_push(hub, wish); });
  if (code != GRADCUBE_OK) return code;
  await_pulls(lock, hub, wish.key);
  return submit(lock, hub, wish, submitted, number);
}

int HubClient::submit(Session::Lock& lock, Hub& hub, const PushWish& wish,
                      const shared::SubmittedPush& submitted, std::uint64_t& number) {
  if (const int code = may_push(hub, wish); code != GRADCUBE_OK) return code;
  Hub::Key& key = hub.key(wish.key);
  Collective collective;
  shared::Submission& submission = collective.submission;
  submission.type = static_cast<std::uint8_t>(shared::SubmissionType::push);
  submission.count = key.elements;
  submission.dtype = static_cast<std::uint8_t>(key.dtype);
  submission.push = submitted;
  submission.push.key = key.number;
  collective.bytes = bytes_of(hub, wish);
  collective.carried_bytes = collective.bytes;
  collective.buffer = static_cast<std::byte*>(const_cast<void*>(wish.buffer));
  collective.input = {0, collective.bytes};
  const Push push = {&hub, wish.key, static_cast<std::byte*>(wish.weights),
                     steps_after(hub, key, wish)};
  // The place is taken while the lock may be released.
  key.pushed = true;
  ++hub.in_flight;
  std::uint64_t listed = 0;
  const auto give_up = [&] {
    key.pushed = false;
    --hub.in_flight;
  };
  try {
    const int code = session_.start(lock, collective, {.received = nullptr, .push = push}, listed);
    if (code != GRADCUBE_OK) {
      give_up();
    } else {
      number = listed;
    }
    return code;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    if (listed == 0) give_up();  // else its end does
    throw;
  }
}

// The key is still this push's.
int HubClient::end_push(Session::Lock& lock, const Request& request, int code) {
  const Push& push = *request.wanted.push;
  if (code == GRADCUBE_OK && push.weights != nullptr) {
    const Hub::Key& key = push.hub->key(push.key);
    const Counted use(lock, push.hub->uses);
    code = copy(lock, *push.hub, key, push.weights);
  }
  settle(request, code);
  return code;
}

void HubClient::settle(const Request& request, int code) {
  const Push& push = *request.wanted.push;
  const auto kind = static_cast<PushKind>(request.collective.submission.push.kind);
  Hub::Key& key = push.hub->key(push.key);
  if (code == GRADCUBE_OK && kind == PushKind::accumulated) {
    key.squares = std::bit_cast<double>(request.message_bytes);
  } else if (code != GRADCUBE_OK || (kind != PushKind::gradients && kind != PushKind::saved)) {
    key.squares.reset();
  }
  if (code == GRADCUBE_OK) {
    key.steps = push.steps;
    ++key.pushes;
  }
  key.has_weights = code == GRADCUBE_OK;
  key.failure = code;
  key.pushed = false;
  --push.hub->in_flight;
}

// What is pushed then changes nothing.
int HubClient::fail_if_ended(const Hub& hub) {
  std::uint32_t notice = 0;
  const int code = hub.end_code(notice);
  if (code == GRADCUBE_OK) return code;
  return fail(code, "the hub of job \"" + session_.job() + "\" has ended: " + why_ended(hub, code));
}

// Why the hub ended with this code, or else its session did; the words of the code where neither
// did.
std::string HubClient::why_ended(const Hub& hub, int code) {
  session_.listen();
  std::uint32_t notice = 0;
  const std::string* why = hub.end_code(notice) == code ? session_.notice(notice) : nullptr;
  if (why != nullptr) return *why;
  return session_.lost_code() == code ? session_.lost_message() : gradcube_strerror(code);
}

int HubClient::fail_if_torn(const Hub& hub) {
  if (!hub.torn) return GRADCUBE_OK;
  return fail(
      GRADCUBE_EINVAL,
      "a checkpoint of the hub was not saved or restored as a whole, so its weights are not "
      "those of a step: leave the job, and restore a checkpoint in another one");
}

int HubClient::no_weights(const Hub& hub, const Hub::Key& key) {
  const std::string text = "key " + in_quotes(key.name) + " of the hub has no weights: ";
  if (key.failure == GRADCUBE_OK) {
    return fail(GRADCUBE_EINVAL,
                text + "push them first (gradcube_hub_init()), or restore a checkpoint");
  }
  // A push that lacks a peer ends the hub, or the session, which has been told the reason.
  const std::string why =
      key.failure == GRADCUBE_EPEER ? why_ended(hub, key.failure) : gradcube_strerror(key.failure);
  return fail(key.failure,
              text + "its last push failed (" + why + "): restore a checkpoint in another hub");
}

// Throws nothing.
int HubClient::no_memory() {
  const int lost = session_.lost_code();
  return session_.fail_with(lost == GRADCUBE_OK ? GRADCUBE_ENODAEMON : lost, [&] {
    return lost != GRADCUBE_OK ? session_.lost_message()
                               : "the daemon at " + session_.connection().path() +
                                     " has taken the hub's memory back: open a new session";
  });
}

int HubClient::is_being_freed() {
  return fail(GRADCUBE_EINVAL, "the hub is being freed by another thread");
}

// Of a trainer that has left or aborted it will soon be taken back.
bool HubClient::keeps_memory(const Hub& hub) const {
  const int lost = session_.lost_code();
  return hub.is_readable() && (lost == GRADCUBE_OK || lost == GRADCUBE_ENODAEMON);
}

int HubClient::may_read(const Hub& hub, std::size_t place, bool also_while_pushed) {
  session_.reap();
  if (place >= hub.size()) return no_key(hub, place);
  if (const int code = fail_if_torn(hub); code != GRADCUBE_OK) return code;
  const Hub::Key& key = hub.key(place);
  const bool is_pushed = key.pushed || key.waiting != 0;
  if ((is_pushed && !also_while_pushed) || (hub.copies && hub.has_aggregator())) {
    return fail(GRADCUBE_EAGAIN, "key " + in_quotes(key.name) +
                                     " of the hub is being pushed: wait for its request first");
  }
  if (!key.has_weights) return no_weights(hub, key);
  if (!keeps_memory(hub)) return no_memory();
  return hub.is_being_freed ? is_being_freed() : GRADCUBE_OK;
}

int HubClient::pull(Hub& hub, std::size_t place, void* weights) {
  Session::Lock lock = session_.enter();
  if (const int code = may_read(hub, place, false); code != GRADCUBE_OK) return code;
  if (weights == nullptr) return fail(GRADCUBE_EINVAL, "the pointer 'weights' is NULL");
  Hub::Key& key = hub.key(place);
  const Counted pull(lock, key.pulls);
  const Counted use(lock, hub.uses);
  return copy(lock, hub, key, weights);
}

int HubClient::copy(Session::Lock& lock, const Hub& hub, const Hub::Key& key, void* weights) {
  bool is_whole = false;
  const int code = session_.touch(lock, weights, [&] {
    std::memcpy(weights, hub.weights(key), key.bytes);
    is_whole = hub.is_readable();
  });
  return code != GRADCUBE_OK || is_whole ? code : no_memory();
}

int HubClient::nothing(const Hub::Key& key) {
  return fail(GRADCUBE_EINVAL, "key " + in_quotes(key.name) +
                                   " of the hub has accumulated nothing: call "
                                   "gradcube_hub_accumulate() first");
}

// In the order of the names, so all trainers have the same bits.
int HubClient::norm(Hub& hub, double& norm) {
  const Session::Lock lock = session_.enter();
  if (!hub.accumulates()) return fail(GRADCUBE_EINVAL, kNoAccumulation);
  double squares = 0;
  for (std::size_t number = 0; number < hub.size(); ++number) {
    const std::size_t place = hub.place_by_name(number);
    if (const int code = may_read(hub, place, false); code != GRADCUBE_OK) return code;
    if (!hub.key(place).squares.has_value()) return nothing(hub.key(place));
    squares += *hub.key(place).squares;
  }
  norm = std::sqrt(squares);
  return GRADCUBE_OK;
}

const void* HubClient::weights(Hub& hub, std::size_t place) {
  const Session::Lock lock = session_.enter();
  if (may_read(hub, place, true) != GRADCUBE_OK) return nullptr;
  const std::lock_guard views(shown_mutex_);
  if (session_.is_aborted()) {
    fail(GRADCUBE_EABORTED, "gradcube_abort() was called on this session");
    return nullptr;
  }
  const std::byte* shown = hub.show();
  if (shown == nullptr) {
    fail(GRADCUBE_ENOMEM, with_system_error("the hub's weights cannot be shown", errno));
    return nullptr;
  }
  if (shown_.empty() || shown_.back() != hub.mapping()) shown_.push_back(hub.mapping());
  if (session_.lost_code() != GRADCUBE_OK) hub.mapping()->keep_shown();  // the daemon may live
  return shown + hub.key(place).begin;
}

int HubClient::no_key(const Hub& hub, std::size_t place) {
  return fail(GRADCUBE_EINVAL, "the hub has no key " + std::to_string(place) + ": expected 0 to " +
                                   std::to_string(hub.size() - 1));
}

std::string HubClient::text_of_push(const Request& request) const {
  const Push& push = *request.wanted.push;
  const bool weights =
      request.collective.submission.push.kind == static_cast<std::uint8_t>(PushKind::weights);
  return std::string(weights ? "the first push" : "the push") + " of key " +
         in_quotes(push.hub->key(push.key).name) + " of the hub";
}

}  // namespace gradcube::trainer
