#include "control/checkpoint/checkpoint_writer.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/checkpoint/crc32c.h"
#include "control/checkpoint/little_endian.h"

namespace gradcube::control {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays go to files as they are");

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string path, const CheckpointHeader& header)
    : path_(std::move(path)), temporary_(path_ + ".XXXXXX"), header_(header) {
  const std::vector<std::uint8_t> bytes = encode_checkpoint_header(header);
  file_ = Descriptor(mkostemp(temporary_.data(), O_CLOEXEC));
  if (file_.get() < 0) refuse();
  try {
    write_bytes(bytes);
  } catch (...) {
    unlink(temporary_.c_str());
    throw;
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (!committed_) unlink(temporary_.c_str());
}

void CheckpointWriter::refuse() const {
  throw SetupError("checkpoint " + quoted(path_) + " cannot be written: " + std::strerror(errno));
}

void CheckpointWriter::write_bytes(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void CheckpointWriter::write(std::span<const float> array) {
  if (range_ == header_.ranges.size() || array.size() != header_.ranges[range_].elements) {
    throw std::invalid_argument("the checkpoint's next array has another size");
  }
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes());
  write_bytes(bytes);
  std::array<std::uint8_t, sizeof(std::uint32_t)> crc{};
  store_little(crc.data(), crc32c(bytes));
  write_bytes(crc);
  if (++array_ == header_.arrays()) {
    array_ = 0;
    ++range_;
  }
}

void CheckpointWriter::commit() {
  if (range_ != header_.ranges.size()) {
    throw std::invalid_argument("the checkpoint has further arrays");
  }
  if (fsync(file_.get()) != 0) refuse();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) refuse();
  committed_ = true;
  // The new name is durable once its folder is.
  const Descriptor folder(open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) refuse();
}

}  // namespace gradcube::control
