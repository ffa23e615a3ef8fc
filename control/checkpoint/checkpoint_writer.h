// Writes a hub's checkpoint (checkpoint_header.h) so that at its path there is never a part of one:
// nothing, or the whole from commit() on, also when the power fails. It is written to a temporary
// file beside it, which is made durable and then gets the path's name, which no file may have.
// Where several servers write a part each, finish() lets them agree that all parts are durable
// before any of them names its own.
//
// The file belongs to this process's user, and its mode is an ordinary new file's: 0666 less the
// umask. Without commit() the temporary file is removed; only a process that is killed leaves it
// behind, until remove_orphan() is called. Its name is the path, a point, six characters that tell
// running hosts apart, and six random ones; its writer has it locked (flock()), or where the file
// system has no locks, the six are of no host.
//
// All functions throw a SetupError, with the system's reason, where the disk is full or the folder
// cannot be written to. After that, and after commit(), the writer can only be destroyed: all else
// throws std::invalid_argument. One thread at a time.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_WRITER_H_
#define GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "control/base/descriptor.h"
#include "control/checkpoint/checkpoint_header.h"

namespace gradcube::control {

class CheckpointWriter {
 public:
  // Throws std::invalid_argument for a header that makes no sense.
  CheckpointWriter(std::string path, const CheckpointHeader& header);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // The next array: of each range of the header the weights, then the states. Throws
  // std::invalid_argument for one of another size.
  void write(std::span<const float> array);

  // After the last array (else std::invalid_argument). When it returns, the temporary file is
  // durable, and at the path nothing has changed.
  void finish();

  // finish(), if that has not been called, and then the new checkpoint is at its path, or at
  // another one of its folder. It is durable there when this returns. After a SetupError it is not
  // there; of several writers that take one path at once all but one get one.
  void commit() { commit(path_); }
  void commit(const std::string& path);

 private:
  void write_bytes(std::span<const std::uint8_t> bytes);
  void require_usable() const;
  [[noreturn]] void refuse();

  std::string path_;
  std::string temporary_;
  CheckpointHeader header_;
  Descriptor file_;
  std::size_t range_ = 0;
  std::size_t array_ = 0;
  bool finished_ = false;
  bool named_ = false;
  bool failed_ = false;
};

// Behind a path, in the names of temporary files.
inline constexpr std::size_t kTemporarySuffixBytes = 13;

// Removes a temporary file whose writer was killed on this host, since that was started. What has
// another name, is of another host or has a living writer stays, and so does what cannot be
// removed.
void remove_orphan(const std::string& temporary);

// Replaces what is at `to`, in the same folder, durably. Throws SetupError.
void rename_durably(const std::string& from, const std::string& to);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_WRITER_H_
