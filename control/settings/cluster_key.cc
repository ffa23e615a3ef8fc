#include "control/settings/cluster_key.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::control {

namespace {

constexpr std::size_t kDigits = 2 * sizeof(Secret);

std::string name_of(const std::filesystem::path& path) {
  return "the key file " + control::quoted(path.string());
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw SetupError(name_of(path) + " " + what);
}

// The file's text, without what ends its lines; of a longer file so much that it is no key.
std::string read_text(const std::filesystem::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    refuse(path, fmt::format("cannot be opened: {}; `gradcube keygen` makes one, and the same has "
                             "to be on every host",
                             std::strerror(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) refuse(path, "is no file");
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    refuse(path, fmt::format("belongs to user {}: expected this daemon's user {} or root",
                             status.st_uid, geteuid()));
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    refuse(path,
           "can be used by others than its owner: `chmod 600` mends it; if others may have "
           "read it, make another key");
  }
  std::string text(2 * kDigits, '\0');
  const ssize_t bytes = read(file.get(), text.data(), text.size());
  if (bytes < 0) refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  text.resize(static_cast<std::size_t>(bytes));
  // What carries a key from host to host may add some.
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

Secret draw_secret() {
  Secret secret;
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    throw SetupError(fmt::format("cannot draw a random key: {}", std::strerror(errno)));
  }
  return secret;
}

std::string key_text(const Secret& key) { return fmt::format("{:02x}\n", fmt::join(key, "")); }

void write_key_file(const std::filesystem::path& path, std::string_view text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) {
    refuse(path, errno == EEXIST
                     ? "is there already: a cluster may use it; remove it first, or name another"
                     : fmt::format("cannot be made: {}", std::strerror(errno)));
  }
  if (write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  const int error = errno;
  unlink(path.c_str());
  refuse(path, fmt::format("cannot be written: {}", std::strerror(error)));
}

Secret read_key_file(const std::filesystem::path& path) {
  std::string text = read_text(path);
  Secret key;
  const bool is_key = text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
                        return value_of(c) >= 0;
                      });
  if (!is_key) refuse(path, "is no key: expected a line of 64 digits 0-9 and a-f");
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::uint8_t>(value_of(text[2 * i]) << 4 | value_of(text[2 * i + 1]));
  }
  explicit_bzero(text.data(), text.size());
  wipe_stack();
  return key;
}

OwnKeyFile::OwnKeyFile(std::filesystem::path path, std::string_view text) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  write_key_file(path, text);
  path_ = std::move(path);
}

OwnKeyFile::~OwnKeyFile() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

}  // namespace gradcube::control
