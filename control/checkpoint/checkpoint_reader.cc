#include "control/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/byte_form.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradcube::control {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays come from files as they are");

constexpr std::array<const char*, 3> kArrays = {"weights", "first state", "second state"};

// Throws a SetupError unless it can be asked and is a regular file.
std::uint64_t size_of(const Descriptor& file, const std::string& where) {
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    throw SetupError(where + " cannot be read: " + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw SetupError(where + " cannot be read: it is no regular file");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

std::span<std::uint8_t> bytes_of(std::span<float> array) {
  return {reinterpret_cast<std::uint8_t*>(array.data()), array.size_bytes()};
}

}  // namespace

Descriptor open_checkpoint(const std::string& path) {
  // Without O_NONBLOCK opening a pipe would wait for its writer.
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  size_of(file, "checkpoint " + quoted(path));
  return file;
}

CheckpointReader::CheckpointReader(Descriptor file, std::string where)
    : file_(std::move(file)), where_(std::move(where)), file_bytes_(size_of(file_, where_)) {
  std::vector<std::uint8_t> bytes(kCheckpointPrefix);
  bytes.resize(read_some(bytes));
  const std::uint64_t size = checkpoint_header_bytes(bytes, file_bytes_, where_);
  bytes.resize(size);
  read_exactly(std::span(bytes).subspan(kCheckpointPrefix));
  header_ = parse_checkpoint_header(bytes, file_bytes_, where_);
}

std::size_t CheckpointReader::read_some(std::span<std::uint8_t> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count = ::read(file_.get(), to.data() + done, to.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw SetupError(where_ + " cannot be read: " + std::strerror(errno));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void CheckpointReader::read_exactly(std::span<std::uint8_t> to) {
  if (read_some(to) == to.size()) return;
  throw UsageError(where_ + ": it became shorter while it was read");
}

void CheckpointReader::end_array(std::uint64_t checksum) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> stored{};
  read_exactly(stored);
  if (load_little<std::uint64_t>(stored.data()) != checksum) {
    const CheckpointRange& range = header_.ranges[range_];
    throw UsageError(where_ + ": it is damaged: the checksum of the " + kArrays[array_] +
                     " of key " + quoted(header_.keys[range.key].name) + ", elements " +
                     std::to_string(range.first_element) + " to " +
                     std::to_string(range.first_element + range.elements - 1) + ", is wrong");
  }
  if (++array_ == header_.arrays()) {
    array_ = 0;
    ++range_;
  }
}

void CheckpointReader::read(std::span<float> to) {
  if (at_end() || to.size() != elements()) {
    throw std::invalid_argument("the checkpoint's next array has another size");
  }
  read_exactly(bytes_of(to));
  end_array(checkpoint_checksum(bytes_of(to)));
}

void CheckpointReader::check_rest() {
  std::vector<std::uint8_t> block(std::size_t{1} << 20);
  while (!at_end()) {
    XXH3_state_t checksum;
    XXH3_64bits_reset(&checksum);
    for (std::uint64_t left = elements() * sizeof(float); left > 0;) {
      const auto part = std::span(block).first(std::min<std::uint64_t>(left, block.size()));
      read_exactly(part);
      XXH3_64bits_update(&checksum, part.data(), part.size());
      left -= part.size();
    }
    end_array(XXH3_64bits_digest(&checksum));
  }
}

void CheckpointReader::require_same_hub(std::span<const HubKey> keys,
                                        aggregation::OptimizerRule rule) const {
  if (rule != header_.settings.rule) {
    const auto name = [](auto of) { return std::string(aggregation::optimizer_rule_name(of)); };
    throw UsageError(where_ + ": it is of the optimizer " + name(header_.settings.rule) +
                     ", and this hub runs " + name(rule));
  }
  const auto [theirs, ours] =
      std::mismatch(header_.keys.begin(), header_.keys.end(), keys.begin(), keys.end());
  const auto text = [](auto key, auto end) {
    if (key == end) return std::string("nothing");
    return quoted(key->name) + ", " + std::to_string(key->elements) + " elements of " +
           std::string(aggregation::data_type_name(key->type));
  };
  if (theirs == header_.keys.end() && ours == keys.end()) return;
  throw UsageError(where_ + ": it is of other keys: it has " + text(theirs, header_.keys.end()) +
                   " where this hub has " + text(ours, keys.end()));
}

}  // namespace gradcube::control
