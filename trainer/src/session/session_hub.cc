// The session's hub: how trainers agree on it, how it is pushed to, and how it goes.

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include "control/checkpoint/crc32c.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/session/session.h"

namespace gradcube::trainer {
namespace {

constexpr const char* kTorn =
    "what the hub's aggregator has was not saved or loaded as a whole, so its weights are not "
    "here: "
    "leave the job, and restore a checkpoint in another one";

}  // namespace

// What each rank says, on lane 0. Throws Failure. The words lie in shared memory, which stays the
// all-gather's also where it comes too late.
std::vector<Session::Said> Session::gather(const Said& own, const Deadline& deadline) {
  const std::size_t bytes = place_.size * sizeof(own);
  auto* const block = static_cast<std::byte*>(allocate(bytes));
  if (block == nullptr) throw Failure(last_failure().code, last_failure().message);
  std::memset(block, 0, bytes);
  std::memcpy(block + place_.rank * sizeof(own), &own, sizeof(own));
  gradcube_collective all_gather = GRADCUBE_COLLECTIVE_INIT;
  all_gather.kind = GRADCUBE_ALL_GATHER;
  all_gather.buffer = block;
  all_gather.count = sizeof(own) / sizeof(std::uint64_t);
  all_gather.dtype = GRADCUBE_INT64;
  std::uint64_t request = 0;
  int code = submit(all_gather, request);
  if (code == GRADCUBE_OK) code = wait(request, deadline.poll_timeout());
  std::vector<Said> said(place_.size);
  if (code == GRADCUBE_OK) std::memcpy(said.data(), block, bytes);
  const std::string why = code == GRADCUBE_OK ? "" : last_failure().message;
  if (code != GRADCUBE_OK) give_up(request, Deadline::in_milliseconds(0));
  free(block);
  if (code != GRADCUBE_OK) throw Failure(code, why);
  return said;
}

std::unique_ptr<Hub> Session::make_hub(const gradcube_hub_settings& settings, int timeout_ms) {
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  std::uint32_t number = 0;
  {
    const Lock lock = enter();
    if (lost_code_ != GRADCUBE_OK) throw Failure(lost_code_, lost_message_);
    if (hub_ != nullptr) throw Failure(GRADCUBE_EINVAL, "the job has a hub: free it first");
    number = hubs_ + 1;
  }
  auto hub = std::make_unique<Hub>(settings, number);
  const std::vector<Said> digests = gather({.value = hub->digest()}, deadline);
  {
    // On all trainers alike, whatever fails at one of them from here on.
    const Lock lock = enter();
    hubs_ = number;
  }
  const auto other = std::find_if(digests.begin(), digests.end(),
                                  [&](const Said& said) { return said.value != digests[0].value; });
  if (other != digests.end()) {
    throw Failure(GRADCUBE_EMISMATCH,
                  "the trainers of job \"" + job_ + "\" ask for different hubs: rank " +
                      std::to_string(other - digests.begin()) +
                      " has other keys than rank 0, another optimizer, chunk size, lane, "
                      "aggregator or staleness, or has made another number of hubs");
  }
  int code = GRADCUBE_OK;
  std::string why;
  try {
    ask_for_hub(*hub, deadline);
  } catch (const Failure& failure) {
    code = failure.code();
    why = failure.what();
  }
  std::uint64_t run = 0;
  if (::getentropy(&run, sizeof(run)) != 0) run = hub->digest();
  const std::vector<Said> codes = gather({.code = code, .value = run}, deadline);
  const auto failed = std::find_if(codes.begin(), codes.end(),
                                   [](const Said& said) { return said.code != GRADCUBE_OK; });
  if (failed == codes.end()) {
    const Lock lock = enter();
    hub->timeout_ms = timeout_ms;
    hub->run = codes.front().value;
    hub_ = hub.get();
    return hub;
  }
  connection_.send_end_hub(hub->number());
  if (code != GRADCUBE_OK) throw Failure(code, why);
  throw Failure(static_cast<int>(failed->code), "the hub of job \"" + job_ +
                                                    "\" was not made: the daemon of rank " +
                                                    std::to_string(failed - codes.begin()) +
                                                    " refused it; that trainer's message says why");
}

// Has this server's daemon make its part, and maps the weights.
void Session::ask_for_hub(Hub& hub, const Deadline& deadline) {
  const std::vector<char> table = hub.table();
  void* block = allocate(table.size());
  if (block == nullptr) throw Failure(last_failure().code, last_failure().message);
  std::memcpy(block, table.data(), table.size());
  Lock lock = enter();
  if (hub_pending_) {
    heap_.release(block);
    throw Failure(GRADCUBE_EAGAIN, "the daemon at " + connection_.path() +
                                       " is still making the hub that it was asked for before");
  }
  hub_pending_ = true;
  hub_answer_.reset();
  connection_.send_make_hub(hub.number(), hub.lane(),
                            region_.offset_of(static_cast<std::byte*>(block)), table.size());
  {
    Waiters::Waiter waiter(waiters_, Waiters::For::hub);
    sleep(lock, waiter, deadline, OnSignal::go_on);
  }
  // Where it has not answered, the daemon may still read the table.
  if (hub_answer_.has_value()) heap_.release(block);
  if (lost_code_ != GRADCUBE_OK) throw Failure(lost_code_, lost_message_);
  if (!hub_answer_.has_value()) {
    throw Failure(GRADCUBE_ETIMEDOUT, "the daemon at " + connection_.path() +
                                          " did not make the hub in time: look at it with "
                                          "`gradcube status`");
  }
  HubAnswer answer = std::move(*std::exchange(hub_answer_, std::nullopt));
  if (answer.notice.code != GRADCUBE_OK) throw Failure(answer.notice.code, answer.notice.text);
  if (!answer.weights.valid() || answer.notice.request != hub.bytes()) {
    throw Failure(GRADCUBE_EPROTOCOL, "the daemon at " + connection_.path() +
                                          " made another hub than it was asked for: use the "
                                          "library that came with the daemon");
  }
  hub.map_memory(answer.weights.get());
}

void Session::take_hub(const shared::Notice& notice, Descriptor weights) {
  hub_pending_ = false;
  if (notice.number != hubs_) return;  // nobody waits for it any more
  hub_answer_ = HubAnswer{notice, std::move(weights)};
  call_served();
}

int Session::free_hub(Hub& hub, int timeout_ms) {
  {
    const Lock lock = enter();
    reap();
    if (lost_code_ != GRADCUBE_OK) let_go_of(hub);
    if (hub.calls != 0) {
      return fail(GRADCUBE_EAGAIN,
                  "another thread saves or restores the hub: wait for that call's end first");
    }
    if (hub.in_flight != 0) {
      return fail(GRADCUBE_EAGAIN, std::to_string(hub.in_flight) +
                                       " pushes to the hub are in flight: wait for their requests "
                                       "first");
    }
    hub.is_being_freed = true;
  }
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  gradcube_collective barrier = GRADCUBE_COLLECTIVE_INIT;
  barrier.kind = GRADCUBE_BARRIER;
  std::uint64_t request = 0;
  int code = submit(barrier, request);
  if (code == GRADCUBE_EAGAIN) {  // nothing was submitted
    const Lock lock = enter();
    hub.is_being_freed = false;
    return code;
  }
  if (code == GRADCUBE_OK) code = wait(request, deadline.poll_timeout());
  const std::string why = code == GRADCUBE_OK ? "" : last_failure().message;
  if (code != GRADCUBE_OK) give_up(request, Deadline::in_milliseconds(0));
  const Lock lock = enter();
  if (lost_code_ == GRADCUBE_OK) connection_.send_end_hub(hub.number());
  if (hub_ == &hub) hub_ = nullptr;
  return code == GRADCUBE_OK ? GRADCUBE_OK : fail(code, why);
}

// All pushes of a lost session have failed. Those whose end was not reported need the hub no more.
void Session::let_go_of(Hub& hub) {
  requests_.for_each_listed([&hub](Request& request) {
    std::optional<Push>& push = request.wanted.push;
    if (!push.has_value() || push->hub != &hub) return;
    push.reset();
    --hub.in_flight;
  });
}

// Without the lock: a key may have gigabytes.
std::uint64_t Session::tag_of(const Hub& hub, const PushWish& wish) {
  switch (wish.kind) {
    case shared::Kind::push_gradients:
      return std::bit_cast<std::uint64_t>(wish.rate);
    case shared::Kind::push_restored:
      return wish.steps;
    case shared::Kind::push_saved:
      return 0;
    case shared::Kind::push_loaded:
      return wish.has_plane ? wish.steps + 1 : 0;
    default:
      break;
  }
  if (wish.key >= hub.size() || wish.buffer == nullptr) return 0;
  return control::crc32c({static_cast<const std::uint8_t*>(wish.buffer), hub.key(wish.key).bytes});
}

std::uint64_t Session::steps_after(const Hub& hub, const Hub::Key& key,
                                   const PushWish& wish) const {
  switch (wish.kind) {
    case shared::Kind::push_gradients:
      return key.steps + (hub.is_asynchronous() ? place_.size / trainers_ : 1);
    case shared::Kind::push_saved:
      return key.steps;
    default:
      return wish.steps;  // 0 of weights
  }
}

std::string Session::problem_of_rate(const Hub& hub, const PushWish& wish) const {
  if (wish.rate == GRADCUBE_HUB_RATE) return "";
  // An aggregator is told it as a float.
  const double rate = hub.has_aggregator() ? static_cast<float>(wish.rate) : wish.rate;
  if (std::isfinite(rate) && wish.rate >= 0) return "";
  return "the learning rate is " + std::to_string(wish.rate) +
         ": expected a finite number, 0 or more, or GRADCUBE_HUB_RATE";
}

int Session::push(Hub& hub, const PushWish& wish, std::uint64_t& number) {
  const std::uint64_t tag = tag_of(hub, wish);
  Lock lock = enter();
  if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
  reap();
  if (wish.key >= hub.size()) return no_key(hub, wish.key);
  Hub::Key& key = hub.key(wish.key);
  if (wish.buffer == nullptr) return fail(GRADCUBE_EINVAL, "what is pushed is NULL");
  if (const std::string problem = problem_of_rate(hub, wish); !problem.empty()) {
    return fail(GRADCUBE_EINVAL, problem);
  }
  if (const int code = fail_if_ended(hub); code != GRADCUBE_OK) return code;
  if (hub.is_being_freed) return fail(GRADCUBE_EINVAL, "the hub is being freed by another thread");
  if (hub.torn) return fail(GRADCUBE_EINVAL, kTorn);
  if (wish.kind == shared::Kind::push_gradients && !key.pushed && !key.has_weights) {
    return no_weights(key);
  }
  const bool is_of_plane =
      wish.kind == shared::Kind::push_saved || wish.kind == shared::Kind::push_loaded;
  if (key.pushed || (hub.copies && !is_of_plane)) {
    return fail(GRADCUBE_EAGAIN, "key " + quoted(key.name) + " of the hub is being " +
                                     (key.pushed ? "pushed: wait for its request first"
                                                 : "copied for a checkpoint by another thread"));
  }
  const std::size_t bytes =
      wish.kind == shared::Kind::push_restored ? hub.bytes_to_restore(key) : key.bytes;
  if (bytes > heap_.capacity()) {
    return fail(GRADCUBE_EINVAL, "key " + quoted(key.name) + " has " + std::to_string(bytes) +
                                     " bytes, and the shared heap " +
                                     std::to_string(heap_.capacity()) +
                                     ": set GRADCUBE_HEAP to more");
  }
  Push push = {&hub, wish.key, static_cast<std::byte*>(wish.weights), 0};
  Collective collective;
  shared::Submission& submission = collective.submission;
  submission.kind = static_cast<std::uint8_t>(wish.kind);
  submission.count = key.elements;
  submission.dtype = static_cast<std::uint8_t>(key.dtype);
  submission.root = key.number;
  submission.paths = hub.number();
  submission.tag = tag;
  submission.op = static_cast<std::uint8_t>(wish.plane);
  push.steps = steps_after(hub, key, wish);
  collective.bytes = bytes;
  collective.carried_bytes = bytes;
  collective.buffer = static_cast<std::byte*>(const_cast<void*>(wish.buffer));
  collective.input = {0, bytes};
  // The place is taken while the lock may be released.
  key.pushed = true;
  ++hub.in_flight;
  const int code = start(lock, collective, {.received = nullptr, .push = push}, number);
  if (code != GRADCUBE_OK) {
    key.pushed = false;
    --hub.in_flight;
  }
  return code;
}

// Nobody finds the request any more, and the key is still this push's.
int Session::end_push(Lock& lock, const Push& push, int code) {
  if (code == GRADCUBE_OK && push.weights != nullptr) {
    const Hub::Key& key = push.hub->key(push.key);
    lock.unlock();
    std::memcpy(push.weights, push.hub->weights(key), key.bytes);
    const bool is_whole = push.hub->is_readable();
    lock = enter();
    if (!is_whole) code = no_memory();
  }
  settle(push, code);
  return code;
}

void Session::settle(const Push& push, int code) {
  Hub::Key& key = push.hub->key(push.key);
  if (code == GRADCUBE_OK) key.steps = push.steps;
  key.has_weights = code == GRADCUBE_OK;
  key.failure = code;
  key.pushed = false;
  --push.hub->in_flight;
}

// What is pushed then changes nothing.
int Session::fail_if_ended(const Hub& hub) {
  std::uint32_t notice = 0;
  const int code = hub.end_code(notice);
  if (code == GRADCUBE_OK) return code;
  listen();
  const std::string* why = notices_.text_of(notice);
  return fail(code, "the hub of job \"" + job_ +
                        "\" has ended: " + (why != nullptr ? *why : gradcube_strerror(code)));
}

int Session::no_weights(const Hub::Key& key) {
  const std::string text = "key " + quoted(key.name) + " of the hub has no weights: ";
  if (key.failure == GRADCUBE_OK) {
    return fail(GRADCUBE_EINVAL,
                text + "push them first (gradcube_hub_init()), or restore a checkpoint");
  }
  return fail(key.failure, text + "its last push failed (" + gradcube_strerror(key.failure) +
                               "): restore a checkpoint in another hub");
}

int Session::no_memory() {
  if (lost_code_ != GRADCUBE_OK) return fail(lost_code_, lost_message_);
  return fail(GRADCUBE_ENODAEMON, "the daemon at " + connection_.path() +
                                      " has taken the hub's memory back: open a new session");
}

int Session::pull(Hub& hub, std::size_t place, void* weights) {
  Lock lock = enter();
  reap();
  if (place >= hub.size()) return no_key(hub, place);
  if (weights == nullptr) return fail(GRADCUBE_EINVAL, "the pointer 'weights' is NULL");
  const Hub::Key& key = hub.key(place);
  if (hub.torn) return fail(GRADCUBE_EINVAL, kTorn);
  if (key.pushed || (hub.copies && hub.has_aggregator())) {
    return fail(GRADCUBE_EAGAIN, "key " + quoted(key.name) +
                                     " of the hub is being pushed: wait for its request first");
  }
  if (!key.has_weights) return no_weights(key);
  lock.unlock();
  std::memcpy(weights, hub.weights(key), key.bytes);
  if (hub.is_readable()) return GRADCUBE_OK;
  lock = enter();
  return no_memory();
}

const void* Session::weights(Hub& hub, std::size_t place) {
  const Lock lock = enter();
  reap();
  if (place >= hub.size()) {
    no_key(hub, place);
  } else if (hub.torn) {
    fail(GRADCUBE_EINVAL, kTorn);
  } else if (const Hub::Key& key = hub.key(place); !key.has_weights && !key.pushed) {
    no_weights(key);
  } else if (!hub.is_readable() ||
             (lost_code_ != GRADCUBE_OK && lost_code_ != GRADCUBE_ENODAEMON)) {
    no_memory();  // or it will soon be taken back
  } else {
    const std::byte* shown = hub.mapping()->show(hub.bytes());
    if (shown != nullptr) {
      if (shown_.empty() || shown_.back() != hub.mapping()) shown_.push_back(hub.mapping());
      return shown + key.begin;
    }
    fail(GRADCUBE_ENOMEM, with_system_error("the hub's weights cannot be shown", errno));
  }
  return nullptr;
}

int Session::no_key(const Hub& hub, std::size_t place) {
  return fail(GRADCUBE_EINVAL, "the hub has no key " + std::to_string(place) + ": expected 0 to " +
                                   std::to_string(hub.size() - 1));
}

std::string Session::text_of_push(const Request& request) {
  const Push& push = *request.wanted.push;
  const bool weights =
      request.collective.submission.kind == static_cast<std::uint8_t>(shared::Kind::push_weights);
  return std::string(weights ? "the first push" : "the push") + " of key " +
         quoted(push.hub->key(push.key).name) + " of the hub";
}

}  // namespace gradcube::trainer
