// What a server takes back of a checkpoint: from the file of its own part, and where that has not
// all that it owns now (the job has other servers, another topology or another algorithm), from the
// files of all parts, if it can see them.
//
// Bytes of files are hostile; the memory that they can take is bounded by what the hub has.
//
// One thread at a time.
#ifndef GRADCUBE_TRAINER_SRC_HUB_HUB_PARTS_H_
#define GRADCUBE_TRAINER_SRC_HUB_HUB_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "control/checkpoint/checkpoint_reader.h"
#include "trainer/src/hub/checkpoint_files.h"
#include "trainer/src/hub/hub.h"
#include "trainer/src/session/session.h"

namespace gradcube::trainer {

class HubParts {
 public:
  // own: the version to take, and this server's part. Reads all that will be read once, to the end.
  // Throws Failure: of what is missing, or damaged, or of another model or optimizer.
  HubParts(const Hub& hub, const std::string& base, const CheckpointFile& own);

  // How many steps the optimizer had taken of the key, by name.
  std::uint64_t steps(std::size_t number) const { return steps_[number]; }
  // Those that were read.
  const std::vector<CheckpointFile>& files() const { return chosen_; }
  // The run that has written them.
  std::uint64_t run() const { return run_; }
  // Puts what is restored here of the key (Hub::to_restore()) into what is pushed
  // (shared::restored_array()), in the session's heap. Keys ascend from call to call. Throws
  // Failure.
  void read_key(Session& session, std::size_t number, std::byte* to);

 private:
  struct File {
    control::CheckpointReader reader;
    std::size_t next = 0;  // of the ranges
  };

  void choose(const std::string& base, const CheckpointFile& own);
  bool add(const std::string& base, const CheckpointFile& file);
  void take(const Hub::Key& key, const control::CheckpointRange& range, std::byte* to) const;

  const Hub& hub_;
  std::vector<Hub::Owned> wanted_;
  std::size_t arrays_;  // of a range
  std::vector<std::uint64_t> steps_;
  std::vector<CheckpointFile> chosen_;
  std::uint64_t run_ = 0;
  std::uint64_t found_ = 0;  // elements
  std::deque<File> files_;
  std::vector<std::vector<float>> values_;  // of a range
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_HUB_PARTS_H_
