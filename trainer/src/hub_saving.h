// One server's part of a checkpoint, from the copy of what it owns until its file is there.
//
// Construction copies the weights and the state that the server owns; a thread of its own writes
// them while the training goes on. Then, when all servers have theirs, one of:
//
//   publish()   gives the file its name, durably;  then all_done() or discard()
//
// The destructor waits for the thread, and removes what was not published.
//
// One thread at a time. No push of the hub by this server's trainers is in flight at construction.
#ifndef GRADCUBE_TRAINER_SRC_HUB_SAVING_H_
#define GRADCUBE_TRAINER_SRC_HUB_SAVING_H_

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "control/checkpoint/checkpoint_writer.h"
#include "trainer/src/checkpoint_files.h"
#include "trainer/src/deadline.h"
#include "trainer/src/hub.h"

namespace gradcube::trainer {

class HubSaving {
 public:
  // Throws std::bad_alloc; std::system_error when there is no thread.
  HubSaving(const Hub& hub, std::string base, const CheckpointFile& file);
  HubSaving(const HubSaving&) = delete;
  HubSaving& operator=(const HubSaving&) = delete;

  // Until all is on the disk, or cannot be. False: not in time.
  bool wait(const Deadline& deadline);

  // Each once, after wait(). Throw Failure with the reason.
  void publish();
  // All servers have published theirs: the steps before are not needed any more.
  void all_done() { remove_older_files(base_, file_); }
  // Some server has not.
  void discard();

 private:
  std::string base_;
  CheckpointFile file_;
  control::CheckpointHeader header_;
  std::vector<std::vector<float>> arrays_;
  std::future<std::unique_ptr<control::CheckpointWriter>> writing_;
};

// The hub's keys as files have them.
std::vector<control::HubKey> checkpoint_keys(const Hub& hub);

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HUB_SAVING_H_
