// How trainers take a checkpoint back: which one, and from which files.

#include <algorithm>
#include <optional>
#include <vector>

#include "control/base/errors.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/hub/hub_checkpoints.h"
#include "trainer/src/hub/hub_parts.h"
#include "trainer/src/hub/hub_saving.h"

namespace gradcube::trainer {
namespace {

// What a rank has of the version that all look for.
constexpr std::uint64_t kVersion = 1;    // it, or an older one
constexpr std::uint64_t kNoFiles = 2;    // others have all files
constexpr std::uint64_t kPublished = 4;  // of any version

auto has(std::uint64_t flags) {
  return [flags](const Said& said) { return (said.has & flags) != 0; };
}

// A rank that has one, if there is such a rank, and one that lacks what it needs.
[[noreturn]] void refuse_missing(const std::vector<Said>& newest, std::size_t rank,
                                 const std::string& what, const std::string& base) {
  std::string found = "files of other servers are";
  for (std::size_t other = 0; other < newest.size(); ++other) {
    if (other == rank || (newest[other].has & kVersion) == 0) continue;
    found =
        "rank " + std::to_string(other) + " has one of step " + std::to_string(newest[other].value);
    break;
  }
  const bool any = (newest[rank].has & kVersion) != 0;
  throw Failure(GRADCUBE_ESYSTEM,
                what + ": " + found + " at " + in_quotes(base) + ", and rank " +
                    std::to_string(rank) + " has " +
                    (any ? "only one of step " + std::to_string(newest[rank].value) : "none"));
}

void require_one_run(const std::vector<Said>& said, const std::string& what) {
  const auto first = std::find_if(said.begin(), said.end(), has(kVersion));
  const auto other = std::find_if(first, said.end(), [&first](const Said& its) {
    return (its.has & kVersion) != 0 && its.value != first->value;
  });
  if (other == said.end()) return;
  throw Failure(GRADCUBE_EINVAL, what + ": the files of rank " +
                                     std::to_string(other - said.begin()) +
                                     " are of another run than those of rank " +
                                     std::to_string(first - said.begin()));
}

}  // namespace

// What is there for this rank, older than `before`.
Attempt HubCheckpoints::offer(const Hub& hub, const std::string& base,
                              const std::optional<CheckpointVersion>& before, std::uint64_t round) {
  const Said about{.has = kNoFiles, .step = Step::offer_checkpoints, .round = round};
  return Attempt(about, [&](Said& own) {
    {
      const Session::Lock lock = session_.enter();
      session_.reap();
      may_change(hub);
    }
    if (!has_files(hub)) return;
    const std::vector<CheckpointFile> files = checkpoint_files(base);
    const auto newest = newest_version(files, own_file(hub, {}), before);
    own.has = newest.has_value() ? kVersion : 0;
    if (std::any_of(files.begin(), files.end(), [](const auto& file) { return !file.prepared; })) {
      own.has |= kPublished;
    }
    own.value = newest.value_or(CheckpointVersion{}).step;
    own.generation = newest.value_or(CheckpointVersion{}).generation;
  });
}

// Nothing, where nobody has published any: what was only prepared was acknowledged to nobody.
std::optional<CheckpointVersion> HubCheckpoints::newest_of_all(const Hub& hub,
                                                               const std::string& base,
                                                               const Deadline& deadline) {
  const std::string what = "the checkpoint of job \"" + session_.job() + "\" cannot be restored";
  std::vector<Said> first;
  std::optional<CheckpointVersion> before;
  for (std::uint64_t round = 0;; ++round) {
    const std::vector<Said> offers =
        agree(session_, offer(hub, base, before, round), what, deadline);
    if (first.empty()) first = offers;
    const auto none = std::find_if_not(offers.begin(), offers.end(), has(kVersion | kNoFiles));
    if (none != offers.end()) {
      if (std::none_of(offers.begin(), offers.end(), has(kPublished))) return std::nullopt;
      refuse_missing(first, static_cast<std::size_t>(none - offers.begin()), what, base);
    }
    std::optional<CheckpointVersion> oldest;
    for (const Said& said : offers) {
      const CheckpointVersion version{said.value, said.generation};
      if ((said.has & kVersion) != 0) oldest = std::min(oldest.value_or(version), version);
    }
    if (!oldest.has_value()) {
      throw Failure(GRADCUBE_EMISMATCH, what + ": each trainer says that another has the files");
    }
    const Said looks{.has = kVersion, .step = Step::look_for_checkpoint, .round = round};
    const Attempt look(looks, [&](Said& own) {
      const auto next = CheckpointVersion{oldest->step, oldest->generation + 1};
      if (!has_files(hub)) return;
      own.has = newest_version(checkpoint_files(base), own_file(hub, {}), next) == oldest;
    });
    const std::vector<Said> looked = agree(session_, look, what, deadline);
    if (std::all_of(looked.begin(), looked.end(), has(kVersion))) return oldest;
    before = oldest;
  }
}

std::uint64_t HubCheckpoints::restore(Hub& hub, const char* path, int timeout_ms) {
  const Deadline deadline = Deadline::in_milliseconds(timeout_ms);
  const HubCall call(session_, hub);
  const std::string base = checkpoint_base(path);
  const std::optional<CheckpointVersion> version = newest_of_all(hub, base, deadline);
  if (!version.has_value()) return GRADCUBE_HUB_NO_STEP;
  std::optional<HubParts> parts;
  const Attempt taking({.step = Step::take_checkpoint}, [&](Said& own) {
    if (!has_files(hub)) return;
    parts.emplace(take_parts(hub, base, *version));
    own.value = parts->run();
    own.has = kVersion;
  });
  const std::string what = "the checkpoint of job \"" + session_.job() + "\" cannot be restored";
  require_one_run(agree(session_, taking, what, deadline), what);
  HubParts* const own_parts = parts.has_value() ? &*parts : nullptr;
  push_parts(hub, own_parts, deadline);
  if (own_parts != nullptr) take_over(hub, base, own_file(hub, {}), *own_parts);
  return version->step;
}

// What this trainer has restored is its own from now on. It has been told to the trainers, so it
// counts, also where the run before could only prepare it.
void HubCheckpoints::take_over(Hub& hub, const std::string& base, const CheckpointFile& own,
                               const HubParts& parts) {
  auto& replaceable = hub.replaceable[base];
  replaceable.clear();
  for (CheckpointFile file : parts.files()) {
    try {
      if (file.prepared && file.is_part(own)) publish_checkpoint(base, file);
    } catch (const control::SetupError&) {
      // It is whole under this name, too.
    }
    replaceable.emplace_back(file, parts.run());
  }
}

HubParts HubCheckpoints::take_parts(const Hub& hub, const std::string& base,
                                    const CheckpointVersion& version) const {
  HubParts parts(hub, base, own_file(hub, version));
  for (std::size_t number = 0; hub.has_aggregator() && number < hub.size(); ++number) {
    if (parts.steps(number) <= shared::kMostLoadedSteps) continue;
    throw Failure(GRADCUBE_EINVAL, "checkpoint " + in_quotes(base) + " of step " +
                                       std::to_string(version.step) + ": key " +
                                       in_quotes(hub.key_by_name(number).name) + " has taken " +
                                       std::to_string(parts.steps(number)) +
                                       " steps; a hub with an aggregator takes at most " +
                                       std::to_string(shared::kMostLoadedSteps));
  }
  return parts;
}

}  // namespace gradcube::trainer
