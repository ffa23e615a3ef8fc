#include "cli/text/keys_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "aggregation/element.h"
#include "cli/text/json_fields.h"
#include "control/base/descriptor.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/read_text.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kLongestKeysFile = 16 << 20;

constexpr std::string_view kExpectedKeys =
    R"({"keys": [{"name": "conv1.weight", "elements": 9408, "dtype": "float32"}, ...]})";

std::string keys_option(const std::string& path) {
  return fmt::format("--keys {}", control::quoted(path));
}

[[noreturn]] void refuse_keys(const std::string& path, std::string_view what) {
  throw control::UsageError(
      fmt::format("{}: {}; expected {}", keys_option(path), what, kExpectedKeys));
}

[[noreturn]] void refuse_unread_keys(const std::string& path, int error) {
  refuse_keys(path, fmt::format("it cannot be read: {}", std::strerror(error)));
}

// Waits for nobody to open a pipe at its other end: one without a writer is empty. A longer file
// than is allowed comes back longer than is allowed.
std::string text_of_keys(const std::string& path) {
  const control::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) refuse_unread_keys(path, errno);
  fcntl(file.get(), F_SETFL, O_RDONLY);  // to wait for what a writer has not written yet
  const auto text = control::read_text(file, kLongestKeysFile);
  if (!text) refuse_unread_keys(path, errno);
  return *text;
}

nlohmann::json json_of_keys(const std::string& path) {
  const std::string text = text_of_keys(path);
  if (text.empty()) refuse_keys(path, "it is empty");
  if (text.size() > kLongestKeysFile) refuse_keys(path, "it is longer than 16 MiB");
  nlohmann::json content = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (content.is_discarded()) refuse_keys(path, "it is no JSON");
  return content;
}

}  // namespace

std::vector<control::HubKey> read_keys_file(const std::string& path) {
  const nlohmann::json content = json_of_keys(path);
  if (!field(content, "keys").is_array()) refuse_keys(path, "it has no list \"keys\"");
  std::vector<control::HubKey> keys;
  for (const nlohmann::json& item : items(content, "keys")) {
    const std::string place = fmt::format("key {}", keys.size());
    const auto name = text_field(item, "name");
    if (!name) refuse_keys(path, place + " has no \"name\" that is a text");
    const auto elements = count_field(item, "elements");
    if (!elements) refuse_keys(path, place + " has no \"elements\" that is a whole number");
    const auto type_name = text_field(item, "dtype");
    if (!type_name) refuse_keys(path, place + " has no \"dtype\" that is a text");
    const auto type = aggregation::parse_data_type(*type_name);
    if (!type) {
      refuse_keys(path, fmt::format("{} has the dtype {}", place, control::quoted(*type_name)));
    }
    keys.push_back({*name, *elements, *type});
  }
  return control::ordered_keys(std::move(keys), keys_option(path));
}

}  // namespace gradcube::cli
