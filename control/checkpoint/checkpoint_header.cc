#include "control/checkpoint/checkpoint_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "control/base/byte_form.h"
#include "control/base/errors.h"
#include "control/checkpoint/optimizer_settings.h"

#define XXH_INLINE_ALL  // no library of it is needed
#include <xxhash.h>

namespace gradcube::control {
namespace {

using aggregation::OptimizerSettings;

// A byte with the eighth bit, and both kinds of line ends: a transfer as text damages it.
constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'G', 'C', 'H', 'U', 'B', '\r', '\n'};
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kChecksumAt = 16;
constexpr std::size_t kHeaderBytesAt = 24;
constexpr std::size_t kFileBytesAt = 32;
constexpr std::size_t kFieldsAt = 40;

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

std::uint64_t header_checksum(std::span<const std::uint8_t> header) {
  return checkpoint_checksum(header.subspan(kHeaderBytesAt));
}

void key_fields(ByteForm& form, HubKey& key, std::uint64_t& steps) {
  form.number(key.elements);
  form.number(steps);
  form.check(steps <= kMostKeySteps, "a key's steps");
  auto length = static_cast<std::uint16_t>(key.name.size());
  form.number(length);
  auto type = static_cast<std::uint8_t>(key.type);
  form.number(type);
  form.check(aggregation::is_data_type(type), "a key's type");
  form.zero<std::uint8_t>("a key's type");
  if (form.good()) key.type = static_cast<aggregation::DataType>(type);
  form.bytes(key.name, length);
}

void range_fields(ByteForm& form, CheckpointRange& range, const std::vector<HubKey>& keys) {
  form.number(range.key);
  form.zero<std::uint32_t>("a range's padding");
  form.number(range.first_element);
  form.number(range.elements);
  form.check(range.key < keys.size(), "a range of a key that is not there");
  if (!form.good()) return;
  const std::uint64_t all = keys[range.key].elements;
  form.check(
      range.elements > 0 && range.elements <= all && range.first_element <= all - range.elements,
      "a range beyond its key");
}

bool follows(const CheckpointRange& range, const CheckpointRange& before) {
  return before.key != range.key ? before.key < range.key
                                 : before.first_element + before.elements <= range.first_element;
}

// All that stands behind the sizes. A list grows as its elements are read, so that a count alone
// reserves no memory.
void header_fields(ByteForm& form, CheckpointHeader& header) {
  form.number(header.step);
  form.number(header.part);
  form.number(header.parts);
  form.check(header.parts <= kMostCheckpointParts && header.part < header.parts,
             "part " + std::to_string(header.part) + " of " + std::to_string(header.parts));
  auto rule = static_cast<std::uint32_t>(header.settings.rule);
  form.number(rule);
  form.check(rule < aggregation::kOptimizerRules, "an unknown optimizer");
  if (form.good()) header.settings.rule = static_cast<aggregation::OptimizerRule>(rule);
  auto keys = static_cast<std::uint32_t>(header.keys.size());
  form.number(keys);
  auto ranges = std::uint64_t{header.ranges.size()};
  form.number(ranges);
  for (double OptimizerSettings::*value : kNumbers) {
    auto bits = std::bit_cast<std::uint64_t>(header.settings.*value);
    form.number(bits);
    header.settings.*value = std::bit_cast<double>(bits);
  }
  form.number(header.run);
  for (std::uint32_t k = 0; form.good() && k < keys; ++k) {
    if (form.reads()) header.keys.emplace_back();
    if (form.reads()) header.steps.emplace_back();
    key_fields(form, header.keys[k], header.steps[k]);
    form.check(k == 0 || header.keys[k - 1].name < header.keys[k].name,
               "keys are not in the order of their names");
  }
  for (std::uint64_t r = 0; form.good() && r < ranges; ++r) {
    if (form.reads()) header.ranges.emplace_back();
    range_fields(form, header.ranges[r], header.keys);
    form.check(r == 0 || follows(header.ranges[r], header.ranges[r - 1]),
               "ranges overlap or are not in order");
  }
}

}  // namespace

std::uint64_t checkpoint_checksum(std::span<const std::uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void seal_checkpoint_header(std::span<std::uint8_t> header) {
  store_little(header.data() + kChecksumAt, header_checksum(header));
}

std::uint64_t checkpoint_data_bytes(const CheckpointHeader& header) {
  std::uint64_t bytes = 0;
  for (const CheckpointRange& range : header.ranges) {
    bytes += header.arrays() * (range.elements * sizeof(float) + sizeof(std::uint64_t));
  }
  return bytes;
}

std::vector<std::uint8_t> encode_checkpoint_header(const CheckpointHeader& header) {
  if (header.steps.size() != header.keys.size()) {
    throw std::invalid_argument("a checkpoint needs a number of steps for each key");
  }
  ByteForm form;
  std::string magic(kMagic.begin(), kMagic.end());
  form.bytes(magic, magic.size());
  std::uint64_t version = kCheckpointVersion;
  form.number(version);
  form.zero<std::uint64_t>();  // the checksum, then both sizes
  form.zero<std::uint64_t>();
  form.zero<std::uint64_t>();
  CheckpointHeader written = header;  // the fields of a form are not const
  header_fields(form, written);
  std::vector<std::uint8_t> bytes = form.take();
  const std::uint64_t file_bytes = bytes.size() + checkpoint_data_bytes(header);
  store_little(bytes.data() + kHeaderBytesAt, std::uint64_t{bytes.size()});
  store_little(bytes.data() + kFileBytesAt, file_bytes);
  seal_checkpoint_header(bytes);
  try {
    parse_checkpoint_header(bytes, file_bytes, "checkpoint");
  } catch (const UsageError& error) {
    throw std::invalid_argument(error.what());
  }
  return bytes;
}

std::uint64_t checkpoint_header_bytes(std::span<const std::uint8_t> prefix,
                                      std::uint64_t file_bytes, std::string_view where) {
  if (prefix.size() < kCheckpointPrefix ||
      std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse(where, "it is no checkpoint of a hub, or its beginning is lost");
  }
  const auto version = load_little<std::uint32_t>(prefix.data() + kVersionAt);
  if (version != kCheckpointVersion) {
    refuse(where, "its format is version " + std::to_string(version) +
                      "; this version of Gradcube reads " + std::to_string(kCheckpointVersion));
  }
  if (load_little<std::uint32_t>(prefix.data() + kVersionAt + 4) != 0) {
    refuse(where, "its header is damaged: it has two versions");
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
  if (load_little<std::uint64_t>(bytes.data() + kChecksumAt) != header_checksum(bytes)) {
    refuse(where, "its header is damaged: the checksum is wrong");
  }
  CheckpointHeader header;
  ByteForm form(bytes.subspan(kFieldsAt));
  header_fields(form, header);
  form.check(form.done(), "bytes behind its lists");
  if (!form.good()) refuse_contents(where, form.broken());
  check_settings(header.settings, where);
  header.keys = ordered_keys(std::move(header.keys), where);
  if (bytes.size() + checkpoint_data_bytes(header) != file_bytes) {
    refuse_contents(where, "its ranges have another size than the file");
  }
  return header;
}

}  // namespace gradcube::control
