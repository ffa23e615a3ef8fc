#include "cli/text/json_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kLongestFile = 16 << 20;

std::string cannot_be_read(int error) {
  return fmt::format("it cannot be read: {}", std::strerror(error));
}

// Into all of `text`, as far as there is something. 0, or what the system says.
int read_into(std::string* text, int descriptor) {
  std::size_t bytes = 0;
  ssize_t got = 0;
  do {
    got = read(descriptor, text->data() + bytes, text->size() - bytes);
    if (got > 0) bytes += static_cast<std::size_t>(got);
  } while (bytes < text->size() && (got > 0 || (got < 0 && errno == EINTR)));
  text->resize(bytes);
  return got < 0 ? errno : 0;
}

}  // namespace

JsonFile::JsonFile(std::string option, std::string path, std::string expected)
    : option_(std::move(option)), path_(std::move(path)), expected_(std::move(expected)) {}

void JsonFile::refuse(std::string_view what) const {
  throw control::UsageError(
      fmt::format("{} {}: {}; expected {}", option_, control::quoted(path_), what, expected_));
}

nlohmann::json JsonFile::content() const {
  const control::Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) refuse(cannot_be_read(errno));
  fcntl(file.get(), F_SETFL, O_RDONLY);  // to wait for what a writer has not written yet
  std::string text(kLongestFile + 1, '\0');
  if (const int error = read_into(&text, file.get())) refuse(cannot_be_read(error));
  if (text.empty()) refuse("it is empty");
  if (text.size() > kLongestFile) refuse("it is longer than 16 MiB");
  nlohmann::json content = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (content.is_discarded()) refuse("it is no JSON");
  return content;
}

}  // namespace gradcube::cli
