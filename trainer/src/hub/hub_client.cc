#include "trainer/src/hub/hub_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/src/base/failure.h"
#include "trainer/src/hub/agreement.h"

namespace gradcube::trainer {

HubClient::~HubClient() {
  if (!session_.is_forked_copy()) session_.leave();
}

// Throws Failure.
std::uint32_t HubClient::next_number() {
  const Session::Lock lock = session_.enter();
  session_.require_member();
  if (hub_ != nullptr) throw Failure(GRADCUBE_EINVAL, "the job has a hub: free it first");
  return hubs_ + 1;
}

std::unique_ptr<Hub> HubClient::make(const gradcube_hub_settings& settings, int timeout_ms) {
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  const std::uint32_t number = next_number();
  auto hub = std::make_unique<Hub>(settings, number);
  const std::vector<Said> digests =
      gather(session_, {.value = hub->digest(), .step = Step::compare_hubs}, deadline);
  {
    // On all trainers alike, whatever fails at one of them from here on.
    const Session::Lock lock = session_.enter();
    hubs_ = number;
  }
  const auto other = std::find_if(digests.begin(), digests.end(),
                                  [&](const Said& said) { return said.value != digests[0].value; });
  if (other != digests.end()) {
    throw Failure(
        GRADCUBE_EMISMATCH,
        "the trainers of job \"" + session_.job() + "\" ask for different hubs: rank " +
            std::to_string(other - digests.begin()) +
            " has other keys than rank 0, another optimizer, chunk size, lane, aggregators or "
            "staleness, accumulates or not, or has made another number of hubs: leave the job");
  }
  std::uint64_t run = 0;
  if (::getentropy(&run, sizeof(run)) != 0) run = hub->digest();
  const Attempt asking({.value = run, .step = Step::make_hub},
                       [&](Said& said) { said.generation = ask_for(*hub, deadline); });
  std::vector<Said> codes;
  try {
    codes = gather(session_, asking.said, deadline);
  } catch (...) {
    session_.connection().say(shared::EndHub{.number = hub->number()});
    throw;
  }
  // A reset has ended what was made before it, though that server's answer may be older.
  const auto failed = std::find_if(codes.begin(), codes.end(), [&](const Said& said) {
    return said.code != GRADCUBE_OK || said.generation != codes.front().generation;
  });
  if (failed == codes.end()) {
    const Session::Lock lock = session_.enter();
    hub->timeout_ms = timeout_ms;
    hub->run = codes.front().value;
    hub_ = hub.get();
    return hub;
  }
  session_.connection().say(shared::EndHub{.number = hub->number()});
  if (asking.failure.has_value()) throw Failure(*asking.failure);
  const std::string what = "the hub of job \"" + session_.job() + "\" was not made: ";
  if (failed->code == GRADCUBE_OK) {
    throw Failure(GRADCUBE_EMISMATCH,
                  what +
                      "the job was reset after one server had its part and before another had: "
                      "create it again");
  }
  throw Failure(static_cast<int>(failed->code),
                what + "rank " + std::to_string(failed - codes.begin()) +
                    " could not have its part, and its message says why");
}

// Has this server's daemon make its part, and maps the weights. Returns the job's epoch in which it
// was made.
std::uint32_t HubClient::ask_for(Hub& hub, const Deadline& deadline) {
  const std::vector<char> table = hub.table();
  std::byte* const block = session_.require_memory(table.size());
  Connection& daemon = session_.connection();
  session_.require_touch(block, [&] { std::memcpy(block, table.data(), table.size()); });
  Session::Lock lock = session_.enter();
  if (table_ != nullptr) {
    session_.release(block);
    throw Failure(GRADCUBE_EAGAIN, "the daemon at " + daemon.path() +
                                       " is still making the hub that it was asked for before");
  }
  table_ = block;
  answer_.reset();
  daemon.say(shared::MakeHub{.number = hub.number(),
                             .offset = session_.offset_of(block),
                             .bytes = table.size(),
                             .lane = hub.lane()});
  session_.await_hub(lock, deadline);
  session_.require_member();
  if (!answer_.has_value()) {
    throw Failure(GRADCUBE_ETIMEDOUT, "the daemon at " + daemon.path() +
                                          " did not make the hub in time: look at it with "
                                          "`gradcube status`");
  }
  const Answer answer = std::move(*std::exchange(answer_, std::nullopt));
  if (answer.notice.code != GRADCUBE_OK) throw Failure(answer.notice.code, answer.notice.text);
  if (!answer.memory.valid()) {
    throw Failure(
        GRADCUBE_ESYSTEM,
        "the hub's memory did not come with the daemon's answer: this process has as many "
        "files open as it may (ulimit -n)");
  }
  if (answer.notice.request != hub.bytes()) {
    throw Failure(GRADCUBE_EPROTOCOL, "the daemon at " + daemon.path() +
                                          " made another hub than it was asked for: use the "
                                          "library that came with the daemon");
  }
  hub.map_memory(answer.memory.get());
  return answer.notice.epoch;
}

void HubClient::take_hub(const shared::Notice& notice, Descriptor memory) {
  if (table_ != nullptr) session_.release(std::exchange(table_, nullptr));
  if (notice.number != hubs_) return;  // nobody waits for it any more
  answer_ = Answer{notice, std::move(memory)};
  session_.call_served();
}

void HubClient::keep_shown() {
  const std::lock_guard lock(shown_mutex_);
  for (const auto& shown : shown_) shown->keep_shown();
}

int HubClient::free(Hub& hub, int timeout_ms) {
  // Without memory for the words, too: the hub is in use.
  const auto refuse = [this](const char* why) {
    return session_.fail_with(GRADCUBE_EAGAIN, [why] { return std::string(why); });
  };
  {
    const Session::Lock lock = session_.enter();
    session_.reap();
    if (hub.calls != 0) {
      return refuse("another thread saves or restores the hub: wait for that call's end first");
    }
    if (hub.uses != 0 || hub.is_being_freed) {
      return refuse(
          "another thread pushes to the hub, copies weights of it, or frees it: wait "
          "for that call's end");
    }
    if (session_.lost_code() != GRADCUBE_OK) let_go_of(hub);
    if (hub.in_flight != 0) {
      return session_.fail_with(GRADCUBE_EAGAIN, [&] {
        return std::to_string(hub.in_flight) +
               " pushes to the hub are in flight: wait for their requests first";
      });
    }
    hub.is_being_freed = true;
  }
  gradcube_collective barrier = GRADCUBE_COLLECTIVE_INIT;
  barrier.kind = GRADCUBE_BARRIER;
  int code = GRADCUBE_EAGAIN;
  try {
    code = session_.run(barrier, Deadline::in_milliseconds(timeout_ms));
  } catch (...) {  // there is no memory for it
    const Session::Lock lock = session_.enter();
    hub.is_being_freed = false;
    throw;
  }
  const Session::Lock lock = session_.enter();
  if (code == GRADCUBE_EAGAIN) {  // nothing was submitted
    hub.is_being_freed = false;
    return code;
  }
  if (session_.lost_code() == GRADCUBE_OK)
    session_.connection().say(shared::EndHub{.number = hub.number()});
  if (hub_ == &hub) hub_ = nullptr;
  return code;
}

// All pushes of a lost session have ended, and no thread is in a call of the hub. Those whose end
// was not reported need the hub no more: a push that wants its weights is told why it has not them.
void HubClient::let_go_of(Hub& hub) {
  session_.for_each_request([&](Request& request) {
    std::optional<Push>& push = request.wanted.push;
    if (!push.has_value() || push->hub != &hub) return;
    const bool lacks_weights = request.code == GRADCUBE_OK && push->weights != nullptr;
    if (lacks_weights) request.code = session_.lost_code();
    push.reset();
    --hub.in_flight;
  });
}

}  // namespace gradcube::trainer
