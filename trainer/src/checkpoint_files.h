// The files of a hub's checkpoints. Each server's part is a file of its own,
//
//   PATH.STEP.PART-of-PARTS    model.hub.1200.3-of-9
//
// so that servers may write to one folder that all see, or each to a disk of its own. Parts of a
// new step lie beside those of the step before, until all are there.
#ifndef GRADCUBE_TRAINER_SRC_CHECKPOINT_FILES_H_
#define GRADCUBE_TRAINER_SRC_CHECKPOINT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gradcube::trainer {

struct CheckpointFile {
  std::uint64_t step = 0;
  std::uint32_t part = 0;  // from 0
  std::uint32_t parts = 1;

  bool operator==(const CheckpointFile&) const = default;
};

std::string path_of(const std::string& base, const CheckpointFile& file);

// Those of `base` in its folder, in any order. Throws Failure when the folder cannot be read.
std::vector<CheckpointFile> checkpoint_files(const std::string& base);

// Removes what `kept` replaces: this part's files of other steps, and earlier steps of another
// number of parts. What cannot be removed stays.
void remove_older_files(const std::string& base, const CheckpointFile& kept);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_CHECKPOINT_FILES_H_
