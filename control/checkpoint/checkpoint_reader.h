// Reads a hub's checkpoint (checkpoint_header.h) from hostile bytes, array by array. A file that is
// torn, truncated, foreign or damaged is refused with a UsageError that says so: the constructor
// checks the header, and each array is checked before it is returned.
//
// One thread at a time.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_READER_H_
#define GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "control/base/descriptor.h"
#include "control/checkpoint/checkpoint_header.h"

namespace gradcube::control {

// A regular file. Throws a SetupError that names it if it cannot be opened.
Descriptor open_checkpoint(const std::string& path);

class CheckpointReader {
 public:
  // Of a regular file from its begin. `where` begins each message: `checkpoint "PATH"`. Throws a
  // SetupError if the file cannot be read, as the functions below do.
  CheckpointReader(Descriptor file, std::string where);

  const CheckpointHeader& header() const { return header_; }
  // Of the file that is read, whatever has its name by now.
  std::uint64_t file_bytes() const { return file_bytes_; }

  // Whether there is another array, and how many elements it has: of each range the weights, then
  // the states.
  bool at_end() const { return range_ == header_.ranges.size(); }
  std::uint64_t elements() const { return header_.ranges[range_].elements; }

  // The next array, of elements() elements. What is in `to` after a UsageError must not be used.
  void read(std::span<float> to);
  // Checks what is left of the file, in little memory.
  void check_rest();

  // Throws a UsageError unless the checkpoint is of these keys and this rule. Other settings may
  // differ: who goes on may want another learning rate.
  void require_same_hub(std::span<const HubKey> keys, aggregation::OptimizerRule rule) const;

 private:
  // The next bytes; fewer than asked for only at the end.
  std::size_t read_some(std::span<std::uint8_t> to);
  void read_exactly(std::span<std::uint8_t> to);
  void end_array(std::uint64_t checksum);

  Descriptor file_;
  std::string where_;
  std::uint64_t file_bytes_;
  CheckpointHeader header_;
  std::size_t range_ = 0;
  std::size_t array_ = 0;  // of the range
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_READER_H_
