#include "control/checkpoint/checkpoint_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "control/base/errors.h"
#include "control/checkpoint/crc32c.h"
#include "control/checkpoint/little_endian.h"
#include "control/checkpoint/optimizer_settings.h"

namespace gradcube::control {
namespace {

using aggregation::OptimizerSettings;

// A byte with the eighth bit, and both kinds of line ends: a transfer as text damages it.
constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'G', 'C', 'H', 'U', 'B', '\r', '\n'};
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kCrcAt = 12;
constexpr std::size_t kHeaderBytesAt = 16;
constexpr std::size_t kFileBytesAt = 24;

constexpr std::array kNumbers = {&OptimizerSettings::learning_rate, &OptimizerSettings::momentum,
                                 &OptimizerSettings::dampening,     &OptimizerSettings::beta1,
                                 &OptimizerSettings::beta2,         &OptimizerSettings::epsilon,
                                 &OptimizerSettings::weight_decay,  &OptimizerSettings::clip};

[[noreturn]] void refuse(std::string_view where, const std::string& what) {
  throw UsageError(std::string(where) + ": " + what);
}

[[noreturn]] void refuse_contents(std::string_view where, const std::string& what) {
  refuse(where, "its header makes no sense: " + what);
}

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof(Number));
    store_little(bytes.data() + at, value);
  }
  void text(std::string_view text) { bytes.insert(bytes.end(), text.begin(), text.end()); }

  std::vector<std::uint8_t> bytes;
};

class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, std::string_view where)
      : rest_(bytes), where_(where) {}

  template <typename Number>
  Number number() {
    return load_little<Number>(take(sizeof(Number)).data());
  }
  std::string text(std::size_t length) {
    const auto bytes = take(length);
    return {bytes.begin(), bytes.end()};
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::uint8_t> take(std::size_t length) {
    if (rest_.size() < length) refuse_contents(where_, "it ends within its lists");
    const auto taken = rest_.first(length);
    rest_ = rest_.subspan(length);
    return taken;
  }

  std::span<const std::uint8_t> rest_;
  std::string_view where_;
};

std::uint32_t header_crc(std::span<const std::uint8_t> header) {
  return crc32c(header.subspan(kHeaderBytesAt));
}

// Keys as ordered_keys() returns them, read from the file in that order, and their steps.
void parse_keys(Reader& reader, std::uint32_t count, CheckpointHeader& header,
                std::string_view where) {
  std::vector<HubKey> keys;
  for (std::uint32_t k = 0; k < count; ++k) {
    HubKey key;
    key.elements = reader.number<std::uint64_t>();
    header.steps.push_back(reader.number<std::uint64_t>());
    if (header.steps.back() > kMostKeySteps) refuse_contents(where, "a key's steps");
    const auto length = reader.number<std::uint16_t>();
    const auto type = reader.number<std::uint8_t>();
    const auto zero = reader.number<std::uint8_t>();
    if (!aggregation::is_data_type(type) || zero != 0) refuse_contents(where, "a key's type");
    key.type = static_cast<aggregation::DataType>(type);
    key.name = reader.text(length);
    if (!keys.empty() && keys.back().name >= key.name) {
      refuse_contents(where, "keys are not in the order of their names");
    }
    keys.push_back(std::move(key));
  }
  header.keys = ordered_keys(std::move(keys), where);
}

void check_range(const CheckpointHeader& header, const CheckpointRange& range,
                 std::string_view where) {
  if (range.key >= header.keys.size()) refuse_contents(where, "a range of a key that is not there");
  const std::uint64_t all = header.keys[range.key].elements;
  if (range.elements == 0 || range.elements > all || range.first_element > all - range.elements) {
    refuse_contents(where, "a range beyond its key");
  }
  if (header.ranges.empty()) return;
  const CheckpointRange& before = header.ranges.back();
  const bool follows = before.key != range.key
                           ? before.key < range.key
                           : before.first_element + before.elements <= range.first_element;
  if (!follows) refuse_contents(where, "ranges overlap or are not in order");
}

CheckpointHeader parse_contents(std::span<const std::uint8_t> bytes, std::string_view where) {
  Reader reader(bytes.subspan(kFileBytesAt + sizeof(std::uint64_t)), where);
  CheckpointHeader header;
  header.step = reader.number<std::uint64_t>();
  header.part = reader.number<std::uint32_t>();
  header.parts = reader.number<std::uint32_t>();
  if (header.parts > kMostCheckpointParts || header.part >= header.parts) {
    refuse_contents(where,
                    "part " + std::to_string(header.part) + " of " + std::to_string(header.parts));
  }
  const auto rule = reader.number<std::uint32_t>();
  if (rule >= aggregation::kOptimizerRules) refuse_contents(where, "an unknown optimizer");
  header.settings.rule = static_cast<aggregation::OptimizerRule>(rule);
  const auto keys = reader.number<std::uint32_t>();
  const auto ranges = reader.number<std::uint64_t>();
  for (double OptimizerSettings::*value : kNumbers) {
    header.settings.*value = std::bit_cast<double>(reader.number<std::uint64_t>());
  }
  check_settings(header.settings, where);
  if (load_little<std::uint32_t>(bytes.data() + kVersionAt) != kOldestCheckpointVersion) {
    header.run = reader.number<std::uint64_t>();
  }
  parse_keys(reader, keys, header, where);
  for (std::uint64_t r = 0; r < ranges; ++r) {
    CheckpointRange range;
    range.key = reader.number<std::uint32_t>();
    if (reader.number<std::uint32_t>() != 0) refuse_contents(where, "a range's padding");
    range.first_element = reader.number<std::uint64_t>();
    range.elements = reader.number<std::uint64_t>();
    check_range(header, range, where);
    header.ranges.push_back(range);
  }
  if (reader.left() > 0) refuse_contents(where, "bytes behind its lists");
  return header;
}

}  // namespace

void seal_checkpoint_header(std::span<std::uint8_t> header) {
  store_little(header.data() + kCrcAt, header_crc(header));
}

std::uint64_t checkpoint_data_bytes(const CheckpointHeader& header) {
  std::uint64_t bytes = 0;
  for (const CheckpointRange& range : header.ranges) {
    bytes += header.arrays() * (range.elements * sizeof(float) + sizeof(std::uint32_t));
  }
  return bytes;
}

std::vector<std::uint8_t> encode_checkpoint_header(const CheckpointHeader& header) {
  if (header.steps.size() != header.keys.size()) {
    throw std::invalid_argument("a checkpoint needs a number of steps for each key");
  }
  Writer writer;
  writer.bytes.assign(kMagic.begin(), kMagic.end());
  writer.number(kCheckpointVersion);
  writer.number(std::uint32_t{0});  // the checksum, then both sizes
  writer.number(std::uint64_t{0});
  writer.number(std::uint64_t{0});
  writer.number(header.step);
  writer.number(header.part);
  writer.number(header.parts);
  writer.number(static_cast<std::uint32_t>(header.settings.rule));
  writer.number(static_cast<std::uint32_t>(header.keys.size()));
  writer.number(std::uint64_t{header.ranges.size()});
  for (double OptimizerSettings::*value : kNumbers) {
    writer.number(std::bit_cast<std::uint64_t>(header.settings.*value));
  }
  writer.number(header.run);
  for (std::size_t k = 0; k < header.keys.size(); ++k) {
    const HubKey& key = header.keys[k];
    writer.number(key.elements);
    writer.number(header.steps[k]);
    writer.number(static_cast<std::uint16_t>(key.name.size()));
    writer.number(static_cast<std::uint8_t>(key.type));
    writer.number(std::uint8_t{0});
    writer.text(key.name);
  }
  for (const CheckpointRange& range : header.ranges) {
    writer.number(range.key);
    writer.number(std::uint32_t{0});
    writer.number(range.first_element);
    writer.number(range.elements);
  }
  std::vector<std::uint8_t>& bytes = writer.bytes;
  const std::uint64_t file_bytes = bytes.size() + checkpoint_data_bytes(header);
  store_little(bytes.data() + kHeaderBytesAt, std::uint64_t{bytes.size()});
  store_little(bytes.data() + kFileBytesAt, file_bytes);
  seal_checkpoint_header(bytes);
  try {
    parse_checkpoint_header(bytes, file_bytes, "checkpoint");
  } catch (const UsageError& error) {
    throw std::invalid_argument(error.what());
  }
  return std::move(writer.bytes);
}

std::uint64_t checkpoint_header_bytes(std::span<const std::uint8_t> prefix,
                                      std::uint64_t file_bytes, std::string_view where) {
  if (prefix.size() < kCheckpointPrefix ||
      std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse(where, "it is no checkpoint of a hub, or its beginning is lost");
  }
  const auto version = load_little<std::uint32_t>(prefix.data() + kVersionAt);
  if (version < kOldestCheckpointVersion || version > kCheckpointVersion) {
    refuse(where, "its format is version " + std::to_string(version) +
                      "; this version of Gradcube reads " +
                      std::to_string(kOldestCheckpointVersion) + " to " +
                      std::to_string(kCheckpointVersion));
  }
  const auto header = load_little<std::uint64_t>(prefix.data() + kHeaderBytesAt);
  const auto whole = load_little<std::uint64_t>(prefix.data() + kFileBytesAt);
  if (header < kCheckpointPrefix || header > kMostHeaderBytes || whole < header) {
    refuse(where, "its header is damaged: the sizes in it are impossible");
  }
  if (file_bytes < whole) {
    refuse(where, "it ends after " + std::to_string(file_bytes) + " of " + std::to_string(whole) +
                      " bytes");
  }
  if (file_bytes > whole) {
    refuse(where, "it has " + std::to_string(file_bytes - whole) + " bytes behind its end");
  }
  return header;
}

CheckpointHeader parse_checkpoint_header(std::span<const std::uint8_t> bytes,
                                         std::uint64_t file_bytes, std::string_view where) {
  const std::size_t prefix = std::min(bytes.size(), kCheckpointPrefix);
  if (checkpoint_header_bytes(bytes.first(prefix), file_bytes, where) != bytes.size()) {
    refuse(where, "its header is damaged: it has another length");
  }
  if (load_little<std::uint32_t>(bytes.data() + kCrcAt) != header_crc(bytes)) {
    refuse(where, "its header is damaged: the checksum is wrong");
  }
  CheckpointHeader header = parse_contents(bytes, where);
  if (bytes.size() + checkpoint_data_bytes(header) != file_bytes) {
    refuse_contents(where, "its ranges have another size than the file");
  }
  return header;
}

}  // namespace gradcube::control
