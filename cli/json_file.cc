#include "cli/json_file.h"

#include <fmt/format.h>
#include <fstream>

#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kLongestFile = 16 << 20;

}  // namespace

JsonFile::JsonFile(std::string option, std::string path, std::string expected)
    : option_(std::move(option)), path_(std::move(path)), expected_(std::move(expected)) {}

void JsonFile::refuse(std::string_view what) const {
  throw control::UsageError(
      fmt::format("{} {}: {}; expected {}", option_, control::quoted(path_), what, expected_));
}

nlohmann::json JsonFile::content() const {
  std::ifstream file(path_);
  std::string text(kLongestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) refuse("it cannot be read, or is empty");
  if (text.size() > kLongestFile) refuse("it is longer than 16 MiB");
  nlohmann::json content = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (content.is_discarded()) refuse("it is no JSON");
  return content;
}

}  // namespace gradcube::cli
