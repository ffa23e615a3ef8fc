// The header of a hub's checkpoint file: what is in the file, and where. docs/hub.md has the format
// byte by byte.
//
// A file holds the weights and the optimizer's state of ranges of keys: of all keys where one
// server owns all, else those that one server owns, which is then one part of several. Data follow
// the header: for each range in order its weights and then its arrays of state, float32, each array
// with its checksum behind it.
//
// Numbers are little-endian. Everything that a reader relies on is checked here, and the memory
// that a header takes is bounded by its own size in the file.
#ifndef GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_HEADER_H_
#define GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_HEADER_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_key.h"

namespace gradcube::control {

inline constexpr std::uint64_t kCheckpointVersion = 4;
inline constexpr std::size_t kCheckpointPrefix = 144;  // of the header: all but keys and ranges
inline constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{256} << 20;
inline constexpr std::uint32_t kMostCheckpointParts = 65536;
inline constexpr std::uint64_t kMostKeySteps = std::uint64_t{1} << 53;  // exact in float64

struct CheckpointRange {
  std::uint32_t key = 0;
  std::uint64_t first_element = 0;
  std::uint64_t elements = 0;

  bool operator==(const CheckpointRange&) const = default;
};

struct CheckpointHeader {
  aggregation::OptimizerSettings settings;  // with the learning rate of the last step
  std::uint64_t step = 0;                   // that are done
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::uint64_t run = 0;                // of the hub that has written all parts
  std::vector<HubKey> keys;             // as ordered_keys() returns them
  std::vector<std::uint64_t> steps;     // of each key: that the optimizer has taken with it
  std::vector<CheckpointRange> ranges;  // ascending, without overlap

  // Of each range: weights and states.
  std::size_t arrays() const { return 1 + aggregation::optimizer_states(settings.rule); }
  bool operator==(const CheckpointHeader&) const = default;
};

// Of the header and of each array: XXH3 of 64 bits, as all bytes are at hand.
std::uint64_t checkpoint_checksum(std::span<const std::uint8_t> bytes);

// The bytes behind the header.
std::uint64_t checkpoint_data_bytes(const CheckpointHeader& header);

// Throws std::invalid_argument for a header that has not one number of steps for each key, or that
// parse_checkpoint_header() would refuse.
std::vector<std::uint8_t> encode_checkpoint_header(const CheckpointHeader& header);

// How long the header is, by the first kCheckpointPrefix bytes of a file of `file_bytes`. Both
// throw a UsageError that begins with `where` and says what is wrong: it is no checkpoint, of
// another version, truncated, longer than it should be, or damaged.
std::uint64_t checkpoint_header_bytes(std::span<const std::uint8_t> prefix,
                                      std::uint64_t file_bytes, std::string_view where);
CheckpointHeader parse_checkpoint_header(std::span<const std::uint8_t> bytes,
                                         std::uint64_t file_bytes, std::string_view where);

// Writes the checksum of a whole header into it.
void seal_checkpoint_header(std::span<std::uint8_t> header);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_CHECKPOINT_CHECKPOINT_HEADER_H_
