// The files of a hub's checkpoints. Each server's part is a file of its own,
//
//   PATH.STEP.PART-of-PARTS               model.hub.1200.3-of-9
//   PATH.STEP.gGENERATION.PART-of-PARTS   model.hub.1200.g1.3-of-9
//
// so that servers may write to one folder that all see, or each to a disk of its own. A step that
// is saved while files of it are there has the next generation, which is greater than all that
// there are in the folders of the job's servers. Headers tell the run that has written a file, so
// that parts of one version, a step and a generation, that are of different runs are found and
// refused.
//
// How one comes to be: each part is written and made durable under a passing name, gets this name
// with ".prepared" behind it when all are, and this name alone when all are prepared. So where a
// part has its name, all others have theirs or are prepared; a version of which all parts have
// either is whole, and any other one was never acknowledged to anybody, unless files of it were
// removed or lost.
#ifndef GRADCUBE_TRAINER_SRC_HUB_CHECKPOINT_FILES_H_
#define GRADCUBE_TRAINER_SRC_HUB_CHECKPOINT_FILES_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace gradcube::trainer {

struct CheckpointVersion {
  std::uint64_t step = 0;
  std::uint64_t generation = 0;

  bool operator==(const CheckpointVersion&) const = default;
  bool operator<(const CheckpointVersion& other) const {
    return std::tie(step, generation) < std::tie(other.step, other.generation);
  }
};

struct CheckpointFile {
  CheckpointVersion version;
  std::uint32_t part = 0;  // from 0
  std::uint32_t parts = 1;
  bool prepared = false;

  bool operator==(const CheckpointFile&) const = default;
  bool is_part(const CheckpointFile& other) const {
    return part == other.part && parts == other.parts;
  }
};

// Of what a caller gives, from the root on: the working folder may change before a checkpoint ends.
// Throws Failure for what is no path of a file.
std::string checkpoint_base(const char* path);

std::string path_of(const std::string& base, const CheckpointFile& file);

// Those of `base` in its folder, in any order. Throws Failure when the folder cannot be read.
std::vector<CheckpointFile> checkpoint_files(const std::string& base);

// Each part of a version once, sorted: the published file where a copied folder has both.
std::vector<CheckpointFile> without_doubles(std::vector<CheckpointFile> files);

// Removes what writers of them that were killed on this host have left behind. What cannot be
// removed stays.
void remove_orphans(const std::string& base);

// The newest version that `files` have of what this part of a job needs (its own file, or all of
// some number of parts), and that is older than `before` if there is one.
std::optional<CheckpointVersion> newest_version(
    const std::vector<CheckpointFile>& files, const CheckpointFile& own,
    const std::optional<CheckpointVersion>& before = std::nullopt);

// For a checkpoint of this step: behind all of the step that there are.
std::uint64_t next_generation(const std::string& base, std::uint64_t step);

// Removes the file if this run has written it: another one may have saved under its name since.
// What cannot be read or removed stays.
void remove_of_run(const std::string& base, const CheckpointFile& file, std::uint64_t run);

// Removes so what is prepared of the part in earlier generations of its step: of attempts that
// nobody goes on with.
void remove_unfinished(const std::string& base, const CheckpointFile& kept,
                       const std::set<std::uint64_t>& runs);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_CHECKPOINT_FILES_H_
