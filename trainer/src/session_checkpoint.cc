// Checkpoints of the session's hub: how trainers agree that one is there, and which to take back.

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "trainer/src/failure.h"
#include "trainer/src/hub_parts.h"
#include "trainer/src/hub_saving.h"
#include "trainer/src/quoted.h"
#include "trainer/src/session.h"

namespace gradcube::trainer {
namespace {

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 62;
// Of those that are being restored at a time.
constexpr std::size_t kMostRestoredKeys = 64;
constexpr std::size_t kMostRestoredBytes = std::size_t{64} << 20;

// What ranks tell each other: a failure's code, or a step.
std::uint64_t word_of(int code, std::uint64_t step) {
  return code == GRADCUBE_OK ? step + 1 : static_cast<std::uint64_t>(std::int64_t{code});
}
bool is_failure(std::uint64_t word) { return static_cast<std::int64_t>(word) < 0; }

std::string base_of(const char* path) {
  if (path == nullptr) throw Failure(GRADCUBE_EINVAL, "the path of the checkpoint is NULL");
  const std::string base = path;
  if (base.empty() || base.back() == '/') {
    throw Failure(GRADCUBE_EINVAL, "invalid path of a checkpoint " + quoted(base) +
                                       ": expected that of a file, such as \"model.hub\"");
  }
  return base;
}

}  // namespace

Session::HubCall::HubCall(Session& session, Hub& hub) : session_(session), hub_(hub) {
  const Lock lock(session_.mutex_);
  ++hub_.calls;
}

Session::HubCall::~HubCall() {
  const Lock lock(session_.mutex_);
  --hub_.calls;
}

// Throws the first failure that a rank has told; `own` is this one's.
void Session::require_all(const std::vector<std::uint64_t>& words, const Failure* own,
                          const std::string& what) const {
  if (own != nullptr) throw Failure(*own);
  const auto failed = std::find_if(words.begin(), words.end(), is_failure);
  if (failed == words.end()) return;
  throw Failure(static_cast<int>(static_cast<std::int64_t>(*failed)),
                what + ": rank " + std::to_string(failed - words.begin()) +
                    " could not; that trainer's message says why");
}

void Session::require_one_step(const std::vector<std::uint64_t>& words, std::uint64_t step) const {
  const auto other = std::find_if(words.begin(), words.end(),
                                  [step](std::uint64_t word) { return word != step + 1; });
  if (other == words.end()) return;
  throw Failure(GRADCUBE_EMISMATCH,
                "the trainers of job \"" + job_ + "\" make checkpoints of different steps: rank " +
                    std::to_string(other - words.begin()) + " of " + std::to_string(*other - 1) +
                    ", this one of " + std::to_string(step));
}

CheckpointFile Session::own_file(const Hub& hub, std::uint64_t step) const {
  if (hub.has_aggregator()) return {step, 0, 1};
  return {step, place_.rank / trainers_, place_.size / trainers_};
}

void Session::begin_checkpoint(Hub& hub, const char* path, std::uint64_t step) {
  const HubCall call(*this, hub);
  const std::string base = base_of(path);
  if (hub.work() != GRADCUBE_HUB_WORK_ALL) {
    throw Failure(GRADCUBE_EINVAL, "the hub is for measurements: its weights are of no use");
  }
  if (step > kMostSteps) {
    throw Failure(GRADCUBE_EINVAL, "a checkpoint of step " + std::to_string(step) +
                                       ": expected at most " + std::to_string(kMostSteps));
  }
  {
    const Lock lock = enter();
    reap();
    if (lost_code_ != GRADCUBE_OK) throw Failure(lost_code_, lost_message_);
    if (hub.torn) {
      throw Failure(GRADCUBE_EINVAL,
                    "the checkpoint before was not made as a whole: leave the job, and restore one "
                    "in another job");
    }
    if (hub.saves) {
      throw Failure(GRADCUBE_EAGAIN,
                    "a checkpoint of the hub is being written: end it before the next one");
    }
    if (hub.in_flight != 0) {
      throw Failure(GRADCUBE_EAGAIN, std::to_string(hub.in_flight) +
                                         " pushes to the hub are in flight: wait for their "
                                         "requests first");
    }
    hub.saves = true;  // and nothing is pushed while it is copied
    hub.copies = true;
  }
  std::unique_ptr<HubSaving> saving;
  const auto done = [&](bool saves) {
    const Lock lock = enter();
    hub.saves = saves;
    hub.copies = false;
    hub.saved_step = step;
    hub.saving = std::move(saving);
  };
  try {
    std::optional<HubCopy> copy;
    if (hub.has_aggregator()) {
      copy = save_planes(hub, Deadline::in_milliseconds(hub.timeout_ms));
    } else if (has_files(hub)) {
      copy = copy_of_owned(hub);
    }
    if (copy.has_value()) {
      saving = std::make_unique<HubSaving>(hub, std::move(*copy), base, own_file(hub, step));
    }
  } catch (...) {
    done(false);
    throw;
  }
  done(true);
}

void Session::end_checkpoint(Hub& hub, int timeout_ms) {
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  const HubCall call(*this, hub);
  std::unique_ptr<HubSaving> saving;
  {
    const Lock lock = enter();
    if (!hub.saves || hub.copies) {
      throw Failure(GRADCUBE_EINVAL, "no checkpoint of the hub was begun");
    }
    saving = std::move(hub.saving);
  }
  if (saving != nullptr && !saving->wait(deadline)) {
    const Lock lock = enter();
    hub.saving = std::move(saving);
    throw Failure(GRADCUBE_ETIMEDOUT,
                  "the checkpoint of step " + std::to_string(hub.saved_step) +
                      " was not written in time: its disk is slow; it is still being written");
  }
  std::optional<Failure> own;
  try {
    if (saving != nullptr) saving->publish();
  } catch (const Failure& failure) {
    own = failure;
  }
  {
    const Lock lock = enter();
    hub.saves = false;
  }
  // Where this throws, nobody knows what the others have heard: they may remove the checkpoint
  // before, so that this one counts. Both stay.
  const std::vector<std::uint64_t> words =
      gather(word_of(own.has_value() ? own->code() : GRADCUBE_OK, hub.saved_step), deadline);
  try {
    require_all(words, own.has_value() ? &*own : nullptr,
                "the checkpoint of job \"" + job_ + "\" was not made");
    require_one_step(words, hub.saved_step);
  } catch (const Failure&) {
    if (saving != nullptr) saving->discard();
    throw;
  }
  if (saving != nullptr) saving->all_done();
}

std::uint64_t Session::restore(Hub& hub, const char* path, int timeout_ms) {
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  const HubCall call(*this, hub);
  const std::string base = base_of(path);
  std::optional<Failure> own;
  // The newest step here; trainers without files take what the others have.
  std::uint64_t step = kMostSteps;
  bool any = true;
  try {
    if (has_files(hub)) any = find_newest(checkpoint_files(base), own_file(hub, 0), step);
  } catch (const Failure& failure) {
    own = failure;
  }
  std::vector<std::uint64_t> words = gather(own.has_value() ? word_of(own->code(), 0)
                                            : any           ? word_of(GRADCUBE_OK, step)
                                                            : 0,
                                            deadline);
  const std::string what = "the checkpoint of job \"" + job_ + "\" cannot be restored";
  require_all(words, own.has_value() ? &*own : nullptr, what);
  const auto least = std::min_element(words.begin(), words.end());
  if (*least == 0) {
    const auto found = std::find_if(words.begin(), words.end(), [](std::uint64_t word) {
      return word != 0 && word != kMostSteps + 1;
    });
    if (found == words.end()) return GRADCUBE_HUB_NO_STEP;
    throw Failure(GRADCUBE_ESYSTEM, what + ": rank " + std::to_string(found - words.begin()) +
                                        " has one of step " + std::to_string(*found - 1) + " at " +
                                        quoted(base) + ", and rank " +
                                        std::to_string(least - words.begin()) + " has none");
  }
  step = *least - 1;
  std::optional<HubParts> parts;
  try {
    if (has_files(hub)) parts.emplace(take_parts(hub, base, step));
  } catch (const Failure& failure) {
    own = failure;
  }
  words = gather(word_of(own.has_value() ? own->code() : GRADCUBE_OK, step), deadline);
  require_all(words, own.has_value() ? &*own : nullptr, what);
  HubParts* const own_parts = parts.has_value() ? &*parts : nullptr;
  if (hub.has_aggregator()) {
    load_planes(hub, own_parts, deadline);
  } else {
    push_restored(hub, own_parts, deadline);
  }
  return step;
}

HubParts Session::take_parts(const Hub& hub, const std::string& base, std::uint64_t step) const {
  HubParts parts(hub, base, own_file(hub, step));
  for (std::size_t number = 0; hub.has_aggregator() && number < hub.size(); ++number) {
    if (parts.steps(number) <= shared::kMostLoadedSteps) continue;
    throw Failure(GRADCUBE_EINVAL, "checkpoint " + quoted(base) + " of step " +
                                       std::to_string(step) + ": key " +
                                       quoted(hub.key_by_name(number).name) + " has taken " +
                                       std::to_string(parts.steps(number)) +
                                       " steps; a hub with an aggregator takes at most " +
                                       std::to_string(shared::kMostLoadedSteps));
  }
  return parts;
}

// parts: null where another trainer of the server has them, whose word counts.
void Session::push_restored(Hub& hub, HubParts* parts, const Deadline& deadline) {
  struct Pushed {
    std::uint64_t request;
    void* block;
    std::size_t bytes;
  };
  std::deque<Pushed> pushed;
  std::size_t bytes_pushed = 0;
  const auto finish_one = [&] {
    const Pushed first = pushed.front();
    if (const int code = wait(first.request, deadline.poll_timeout()); code != GRADCUBE_OK) {
      throw Failure(code, last_failure().message);
    }
    free(first.block);
    bytes_pushed -= first.bytes;
    pushed.pop_front();
  };
  try {
    for (std::size_t number = 0; number < hub.size(); ++number) {
      const std::size_t bytes = hub.bytes_to_restore(hub.key_by_name(number));
      while (pushed.size() >= kMostRestoredKeys ||
             (!pushed.empty() && bytes_pushed + bytes > kMostRestoredBytes)) {
        finish_one();
      }
      void* block = allocate(bytes);
      while (block == nullptr && !pushed.empty()) {
        finish_one();
        block = allocate(bytes);
      }
      if (block == nullptr) throw Failure(last_failure().code, last_failure().message);
      pushed.push_back({0, block, bytes});
      if (parts != nullptr) parts->read_key(number, static_cast<std::byte*>(block));
      const std::uint64_t steps = parts == nullptr ? 0 : parts->steps(number);
      if (const int code = push(hub,
                                {.kind = shared::Kind::push_restored,
                                 .key = hub.place_by_name(number),
                                 .buffer = block,
                                 .steps = steps},
                                pushed.back().request);
          code != GRADCUBE_OK) {
        throw Failure(code, last_failure().message);
      }
      bytes_pushed += bytes;
    }
    while (!pushed.empty()) finish_one();
  } catch (const Failure&) {
    for (const Pushed& each : pushed) free(each.block);
    throw;
  }
}

}  // namespace gradcube::trainer
