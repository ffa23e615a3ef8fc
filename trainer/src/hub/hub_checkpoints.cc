#include "trainer/src/hub/hub_checkpoints.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/hub/hub_saving.h"

namespace gradcube::trainer {
namespace {

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 62;

}  // namespace

HubCall::HubCall(Session& session, Hub& hub) : session_(session), hub_(hub) {
  const std::lock_guard lock(session_.mutex());
  if (hub_.is_being_freed) throw Failure(GRADCUBE_EINVAL, "the hub is being freed");
  if (hub_.calls != 0) {
    throw Failure(GRADCUBE_EAGAIN,
                  "another thread saves or restores the hub: wait for that call's end first");
  }
  ++hub_.calls;
}

HubCall::~HubCall() {
  const std::lock_guard lock(session_.mutex());
  --hub_.calls;
}

void HubCheckpoints::require_alike(const std::vector<Said>& said, const Said& own) const {
  const auto other = std::find_if(said.begin(), said.end(),
                                  [&own](const Said& its) { return its.value != own.value; });
  if (other == said.end()) return;
  throw Failure(GRADCUBE_EMISMATCH, "the trainers of job \"" + session_.job() +
                                        "\" make checkpoints of different steps: rank " +
                                        std::to_string(other - said.begin()) + " of " +
                                        std::to_string(other->value) + ", this one of " +
                                        std::to_string(own.value));
}

// Who begins after a push that another has not made yet has parts of another model.
void HubCheckpoints::require_same_pushes(const std::vector<Said>& said) const {
  const auto one =
      std::find_if(said.begin(), said.end(), [](const Said& its) { return its.pushes; });
  const auto other = std::find_if(one, said.end(), [&one](const Said& its) {
    return its.pushes != 0 && its.pushes != one->pushes;
  });
  if (other == said.end()) return;
  throw Failure(GRADCUBE_EMISMATCH,
                "the checkpoint of job \"" + session_.job() + "\" was not made: ranks " +
                    std::to_string(one - said.begin()) + " and " +
                    std::to_string(other - said.begin()) +
                    " began it after different pushes; let all begin it between the same steps");
}

CheckpointFile HubCheckpoints::own_file(const Hub& hub, const CheckpointVersion& version) const {
  if (hub.has_aggregator()) return {version, 0, 1};
  return {version, session_.place().rank / session_.trainers(),
          session_.place().size / session_.trainers()};
}

// With the lock. Throws Failure.
void HubCheckpoints::may_change(const Hub& hub) {
  session_.listen();
  session_.require_member();
  session_.require(client_.fail_if_ended(hub));
  session_.require(client_.fail_if_torn(hub));
  if (hub.saves) {
    throw Failure(GRADCUBE_EAGAIN,
                  "a checkpoint of the hub is being written: end it before the next one");
  }
  if (hub.in_flight != 0) {
    throw Failure(GRADCUBE_EAGAIN, std::to_string(hub.in_flight) +
                                       " pushes to the hub are in flight: wait for their "
                                       "requests first");
  }
}

void HubCheckpoints::may_save(const Hub& hub) {
  may_change(hub);
  for (std::size_t place = 0; place < hub.size(); ++place) {
    const Hub::Key& key = hub.key(place);
    if (!key.has_weights) session_.require(client_.no_weights(hub, key));
    if (key.squares.has_value()) {
      throw Failure(GRADCUBE_EINVAL, "key " + in_quotes(key.name) +
                                         " of the hub has accumulated gradients, which no "
                                         "checkpoint has: call gradcube_hub_apply() first");
    }
  }
}

void HubCheckpoints::begin(Hub& hub, const char* path, std::uint64_t step) {
  const HubCall call(session_, hub);
  const std::string base = checkpoint_base(path);
  if (step > kMostSteps) {
    throw Failure(GRADCUBE_EINVAL, "a checkpoint of step " + std::to_string(step) +
                                       ": expected at most " + std::to_string(kMostSteps));
  }
  {
    const Session::Lock lock = session_.enter();
    session_.reap();
    may_save(hub);
    hub.saves = true;  // and nothing is pushed while it is copied
    hub.copies = true;
  }
  std::unique_ptr<HubSaving> saving;
  const auto done = [&](bool saves) {
    const Session::Lock lock = session_.enter();
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
    if (copy.has_value() && !hub.is_readable()) {
      const Session::Lock lock = session_.enter();
      session_.require(client_.no_memory());
    }
    if (copy.has_value()) {
      saving = std::make_unique<HubSaving>(hub, std::move(*copy), base, own_file(hub, {step, 0}));
    }
  } catch (...) {
    done(false);
    throw;
  }
  done(true);
}

void HubCheckpoints::end(Hub& hub, int timeout_ms) {
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  const HubCall call(session_, hub);
  std::unique_ptr<HubSaving> saving;
  {
    const Session::Lock lock = session_.enter();
    if (!hub.saves || hub.copies) {
      throw Failure(GRADCUBE_EINVAL, "no checkpoint of the hub was begun");
    }
    saving = std::move(hub.saving);
  }
  if (saving != nullptr && !saving->wait(deadline)) {
    const Session::Lock lock = session_.enter();
    hub.saving = std::move(saving);
    throw Failure(GRADCUBE_ETIMEDOUT,
                  "the checkpoint of step " + std::to_string(hub.saved_step) +
                      " was not written in time: its disk is slow; it is still being written");
  }
  {
    const Session::Lock lock = session_.enter();
    hub.saves = false;
  }
  try {
    make_all(saving.get(), hub.saved_step, deadline);
  } catch (...) {
    if (saving != nullptr && saving->stays()) {
      hub.replaceable[saving->base()].emplace_back(saving->file(), hub.run);
    }
    throw;
  }
  if (saving != nullptr) replace(hub, *saving);
}

// saving: null where another trainer has the server's files, or rank 0 those of all.
void HubCheckpoints::make_all(HubSaving* saving, std::uint64_t step, const Deadline& deadline) {
  const std::string what = "the checkpoint of job \"" + session_.job() + "\" was not made";
  Said about{.value = step};
  const auto attempt = [&](Step its, const auto& act) {
    about.step = its;
    return Attempt(about, [&](Said& own) {
      if (saving != nullptr) act(own);
    });
  };
  const Attempt finished = attempt(Step::finish_checkpoint, [&](Said& own) {
    own.generation = saving->finish();
    own.pushes = saving->pushes_digest();
  });
  const std::vector<Said> all = agree(session_, finished, what, deadline);
  require_alike(all, about);
  require_same_pushes(all);
  std::uint64_t generation = 0;
  for (const Said& said : all) generation = std::max(generation, said.generation);

  const Attempt prepared =
      attempt(Step::prepare_checkpoint, [&](Said&) { saving->prepare(generation); });
  std::vector<Said> heard;
  try {
    heard = gather(session_, prepared.said, deadline);
    require_alike(heard, about);
  } catch (...) {
    // Others may have heard that all are, and publish theirs.
    if (saving != nullptr) saving->keep();
    throw;
  }
  require_all(prepared, heard, what);
  const Attempt published = attempt(Step::publish_checkpoint, [&](Said&) { saving->publish(); });
  require_alike(agree(session_, published,
                      "the checkpoint of job \"" + session_.job() +
                          "\" is whole, but a file could not be renamed",
                      deadline),
                about);
}

// What this trainer has saved or restored before is not needed any more. Files of others stay.
void HubCheckpoints::replace(Hub& hub, const HubSaving& saving) {
  auto& before = hub.replaceable[saving.base()];
  std::set<std::uint64_t> runs = {hub.run};
  for (const auto& [file, run] : before) {
    if (file != saving.file()) remove_of_run(saving.base(), file, run);
    runs.insert(run);
  }
  before = {{saving.file(), hub.run}};
  remove_unfinished(saving.base(), saving.file(), runs);
}

}  // namespace gradcube::trainer
