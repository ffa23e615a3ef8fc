// The reader of a hub's checkpoints: it returns a header whose ranges lie within the keys, and
// arrays with the right checksums, or throws a UsageError.
//
// The first byte of an input says whether the header's checksum is set right before it is read:
// else no damaged header would come further than that.

#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/checkpoint/checkpoint_reader.h"
#include "control/checkpoint/optimizer_settings.h"
#include "protocol/bytes.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradcube::fuzz {
namespace {

// A file that is read from its begin.
control::Descriptor file_of(const Bytes& bytes) {
  control::Descriptor file(memfd_create("checkpoint", MFD_CLOEXEC));
  require(pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "memory takes a file");
  return file;
}

void seal(Bytes& bytes) {
  if (bytes.size() < control::kCheckpointPrefix) return;
  const auto header = protocol::load_little<std::uint64_t>(bytes.data() + 24);
  if (header < control::kCheckpointPrefix || header > bytes.size()) return;
  control::seal_checkpoint_header(std::span(bytes).first(header));
}

void check(const control::CheckpointHeader& header) {
  require(!header.keys.empty(), "a checkpoint has keys");
  require(header.steps.size() == header.keys.size(), "each key has its steps");
  for (const std::uint64_t steps : header.steps) {
    require(steps <= control::kMostKeySteps, "a key's steps can be counted on");
  }
  require(header.part < header.parts, "a part is one of its parts");
  for (const control::CheckpointRange& range : header.ranges) {
    require(range.key < header.keys.size(), "a range is of a key");
    require(range.elements >= 1 && range.elements <= header.keys[range.key].elements &&
                range.first_element <= header.keys[range.key].elements - range.elements,
            "a range lies within its key");
  }
}

Bytes checkpoint(const char* optimizer, const std::vector<control::CheckpointRange>& ranges) {
  const control::CheckpointHeader header = {
      .settings = control::parse_optimizer(optimizer, "optimizer"),
      .step = 7,
      .keys = {{"a", 3, aggregation::DataType::bfloat16},
               {"b", 40, aggregation::DataType::float32}},
      .steps = {7, 5},
      .ranges = ranges};
  Bytes bytes = control::encode_checkpoint_header(header);
  for (const control::CheckpointRange& range : ranges) {
    const Bytes zeros(range.elements * sizeof(float));
    for (std::size_t array = 0; array < header.arrays(); ++array) {
      bytes.insert(bytes.end(), zeros.begin(), zeros.end());
      bytes.resize(bytes.size() + sizeof(std::uint64_t));
      protocol::store_little(bytes.data() + bytes.size() - sizeof(std::uint64_t),
                             control::checkpoint_checksum(zeros));
    }
  }
  return bytes;
}

}  // namespace

const unsigned kMutations = 200'000;

void read_hostile(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  Bytes bytes(input.begin() + 1, input.end());
  if (input[0] % 2 == 1) seal(bytes);
  try {
    control::CheckpointReader reader(file_of(bytes), "checkpoint");
    check(reader.header());
    if (!reader.at_end()) {
      std::vector<float> values(reader.elements());
      reader.read(values);
    }
    reader.check_rest();
    require(control::encode_checkpoint_header(reader.header()).size() +
                    control::checkpoint_data_bytes(reader.header()) ==
                bytes.size(),
            "what is accepted can be written again");
  } catch (const control::UsageError& error) {
    require(std::string_view(error.what()).starts_with("checkpoint: "), "a refusal has a message");
  }
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const std::uint8_t sealed : {0, 1}) {
    for (const Bytes& bytes :
         {checkpoint("sgd", {{0, 0, 3}, {1, 0, 40}}), checkpoint("adamw:lr=0.1", {{1, 5, 7}}),
          checkpoint("nesterov", {{0, 1, 1}, {1, 0, 1}, {1, 39, 1}})}) {
      inputs.push_back({sealed});
      inputs.back().insert(inputs.back().end(), bytes.begin(), bytes.end());
    }
  }
  return inputs;
}

}  // namespace gradcube::fuzz
