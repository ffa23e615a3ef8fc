#include "control/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/byte_form.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays go to files as they are");

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name is durable once its folder is.
bool sync_folder_of(const std::string& path) {
  const Descriptor folder(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && fsync(folder.get()) == 0;
}

[[noreturn]] void throw_refusal(const std::string& path) {
  throw SetupError("checkpoint " + quoted(path) + " cannot be written: " + std::strerror(errno));
}

constexpr std::size_t kMarkBytes = 6;
static_assert(kTemporarySuffixBytes == 1 + 2 * kMarkBytes);
constexpr std::string_view kNoHost = "______";

// Of this host until it is started again. Locks of files are sure on one host alone.
std::string_view host_mark() {
  static const std::string mark = [] {
    std::string text(kMarkBytes, ' ');
    const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    const bool is_read = read(file.get(), text.data(), kMarkBytes) == ssize_t{kMarkBytes};
    return is_read ? text : std::string(kNoHost);
  }();
  return mark;
}

// Replaces the text's last six bytes at random. False, with errno, where the system has no random
// numbers.
bool draw_suffix(std::string& text) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::array<std::uint8_t, kMarkBytes> random{};
  if (getentropy(random.data(), random.size()) != 0) return false;
  auto* to = text.data() + text.size() - random.size();
  for (const std::uint8_t byte : random) *to++ = kLetters[byte % kLetters.size()];
  return true;
}

// Whether it is locked, and nobody has taken it for an orphan before it was.
bool is_held(int file) {
  struct stat status {};
  return flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &status) == 0 && status.st_nlink > 0;
}

// A new file beside the path, and its name; -1 with errno. This is mkostemp(), but with the mode
// that the umask leaves: mkostemp()'s is 0600, and who would widen it must know the umask, which a
// process learns only by changing it for all its threads.
int make_temporary(const std::string& path, std::string& name) {
  constexpr int kTries = 100;
  std::string_view mark = host_mark();
  for (int i = 0; i < kTries; ++i) {
    name = path + "." + std::string(mark) + std::string(kMarkBytes, ' ');
    if (!draw_suffix(name)) return -1;
    const int file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) return -1;
    if (file >= 0 && (mark == kNoHost || is_held(file))) return file;
    if (file < 0) continue;
    close(file);
    unlink(name.c_str());
    mark = kNoHost;
  }
  return -1;
}

// rename(), but to a name that no file has. False, with errno.
bool rename_to_new(const char* from, const char* to) {
  if (link(from, to) == 0) {
    unlink(from);
    return true;
  }
  const bool has_no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
  if (!has_no_links) return false;
  errno = EEXIST;
  return access(to, F_OK) != 0 && rename(from, to) == 0;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string path, const CheckpointHeader& header)
    : path_(std::move(path)), header_(header) {
  const std::vector<std::uint8_t> bytes = encode_checkpoint_header(header);
  file_ = Descriptor(make_temporary(path_, temporary_));
  if (file_.get() < 0) refuse();
  try {
    write_bytes(bytes);
  } catch (...) {
    unlink(temporary_.c_str());
    throw;
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (!named_) unlink(temporary_.c_str());
}

void CheckpointWriter::refuse() {
  failed_ = true;
  throw_refusal(path_);
}

// What has failed is not tried again: a second fsync() returns success for bytes that are lost.
void CheckpointWriter::require_usable() const {
  if (failed_ || named_) throw std::invalid_argument("the checkpoint's writer has ended");
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
  require_usable();
  if (range_ == header_.ranges.size() || array.size() != header_.ranges[range_].elements) {
    throw std::invalid_argument("the checkpoint's next array has another size");
  }
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes());
  write_bytes(bytes);
  std::array<std::uint8_t, sizeof(std::uint64_t)> checksum{};
  store_little(checksum.data(), checkpoint_checksum(bytes));
  write_bytes(checksum);
  if (++array_ == header_.arrays()) {
    array_ = 0;
    ++range_;
  }
}

void CheckpointWriter::finish() {
  require_usable();
  if (range_ != header_.ranges.size()) {
    throw std::invalid_argument("the checkpoint has further arrays");
  }
  if (finished_) return;
  if (fsync(file_.get()) != 0) refuse();
  finished_ = true;
}

void CheckpointWriter::commit(const std::string& path) {
  finish();
  if (!rename_to_new(temporary_.c_str(), path.c_str())) refuse();
  named_ = true;
  if (sync_folder_of(path)) return;
  const int error = errno;
  unlink(path.c_str());
  errno = error;
  refuse();
}

void remove_orphan(const std::string& temporary) {
  std::string_view suffix = temporary;
  suffix.remove_prefix(suffix.size() - std::min(suffix.size(), kTemporarySuffixBytes));
  if (host_mark() == kNoHost || suffix.substr(0, 1) != "." ||
      suffix.substr(1, kMarkBytes) != host_mark()) {
    return;
  }
  const Descriptor file(open(temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlink(temporary.c_str());
}

void rename_durably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0 && sync_folder_of(to)) return;
  throw_refusal(to);
}

}  // namespace gradcube::control
