// One server's part of a checkpoint, from the copy of what it owns until its file is there. Of a
// hub with an aggregator there is one part, which rank 0 has.
//
// A thread of its own writes the copy while the training goes on. Then, each when all servers have
// done what is before it (checkpoint_files.h):
//
//   finish()    it is on the disk
//   prepare()   and has its name, as prepared, which no other run's has
//   publish()   and counts
//
// The destructor waits for the thread, and removes what was not published; what is prepared stays
// where nobody knows whether the others have heard of it: keep().
//
// One thread at a time. No push of the hub by this server's trainers is in flight while it is
// copied.
#ifndef GRADCUBE_TRAINER_SRC_HUB_HUB_SAVING_H_
#define GRADCUBE_TRAINER_SRC_HUB_HUB_SAVING_H_

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "control/checkpoint/checkpoint_header.h"
#include "control/checkpoint/checkpoint_writer.h"
#include "trainer/src/base/deadline.h"
#include "trainer/src/hub/checkpoint_files.h"
#include "trainer/src/hub/hub.h"

namespace gradcube::trainer {

// Ranges of keys, and of each its weights and the optimizer's arrays.
struct HubCopy {
  std::vector<control::CheckpointRange> ranges;
  std::vector<std::vector<float>> arrays;
};

// Of what this server owns.
HubCopy copy_of_owned(const Hub& hub);

class HubSaving {
 public:
  // Throws std::system_error when there is no thread.
  HubSaving(const Hub& hub, HubCopy copy, std::string base, const CheckpointFile& file);
  HubSaving(const HubSaving&) = delete;
  HubSaving& operator=(const HubSaving&) = delete;

  ~HubSaving();

  // Until all is on the disk, or cannot be. False: not in time.
  bool wait(const Deadline& deadline);

  // Each once, after wait(). Throw Failure with the reason. finish(): the generation that it needs
  // at least, for what is in its folder.
  std::uint64_t finish();
  void prepare(std::uint64_t generation);
  void publish();
  void keep() {
    stays_ = is_prepared_;
    is_prepared_ = false;
  }

  // Of how often each key had been pushed. Not 0.
  std::uint64_t pushes_digest() const { return pushes_digest_; }
  // It is prepared or published, and is not removed at the end.
  bool stays() const { return stays_; }
  const std::string& base() const { return base_; }
  const CheckpointFile& file() const { return file_; }

 private:
  std::string base_;
  CheckpointFile file_;
  control::CheckpointHeader header_;
  std::uint64_t pushes_digest_;
  std::vector<std::vector<float>> arrays_;
  std::future<std::unique_ptr<control::CheckpointWriter>> writing_;
  std::unique_ptr<control::CheckpointWriter> written_;
  bool is_prepared_ = false;
  bool stays_ = false;
};

// Gives a prepared file its last name. Throws control::SetupError.
void publish_checkpoint(const std::string& base, CheckpointFile& file);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_HUB_SAVING_H_
