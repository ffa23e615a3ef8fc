#include "cli/text/json_fields.h"

#include <algorithm>
#include <fmt/format.h>

#include "cli/text/units_text.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::cli {
namespace {

constexpr std::size_t kLongestCell = 200;  // longer than a socket's path can be

}  // namespace

using nlohmann::json;

const json& field(const json& object, std::string_view path) {
  static const json kNothing;
  const json* at = &object;
  while (!path.empty()) {
    const std::string key(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (!at->is_object()) return kNothing;
    const auto found = at->find(key);
    if (found == at->end()) return kNothing;
    at = &*found;
  }
  return *at;
}

std::optional<double> number_field(const json& object, std::string_view path) {
  const json& value = field(object, path);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::optional<std::uint64_t> count_field(const json& object, std::string_view path) {
  const json& value = field(object, path);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0)
    return value.get<std::uint64_t>();
  return std::nullopt;
}

std::optional<std::string> text_field(const json& object, std::string_view path) {
  const json& value = field(object, path);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

std::optional<bool> flag_field(const json& object, std::string_view path) {
  const json& value = field(object, path);
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

const json& items(const json& object, std::string_view key) {
  static const json kNone = json::array();
  const json& list = field(object, key);
  return list.is_array() ? list : kNone;
}

std::string address_text(const json& address) {
  if (address.is_string()) return control::printable(address.get<std::string>());
  if (!address.is_array()) return "-";
  std::string text = "[";
  for (const json& digit : address) {
    if (!digit.is_number_integer()) return "-";
    if (text.size() > 1) text += ',';
    text += std::to_string(digit.get<std::int64_t>());
  }
  return text + "]";
}

std::string id_text(const json& object, std::string_view path) {
  const auto id = count_field(object, path);
  return id ? std::to_string(*id) : "-";
}

std::string bytes_text(const json& object, std::string_view path) {
  const auto bytes = number_field(object, path);
  return bytes ? human_bytes(*bytes) : "-";
}

std::string cell_text(const json& object, std::string_view path) {
  const json& value = field(object, path);
  if (value.is_string()) return control::printable(value.get<std::string>(), kLongestCell);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (const auto count = count_field(object, path)) return grouped(*count);
  if (value.is_number()) return fmt::format("{:.4g}", value.get<double>());
  if (value.is_array()) return address_text(value);
  return "-";
}

std::string addresses_text(const json& addresses) {
  std::string text;
  for (const json& address : addresses) {
    text += (text.empty() ? "" : " ") + address_text(address);
  }
  return text;
}

std::string absent_text(const json& topology) { return addresses_text(items(topology, "absent")); }

std::string servers_count_text(const json& topology) {
  const std::size_t absent = items(topology, "absent").size();
  const auto servers = count_field(topology, "servers");
  return (servers ? control::counted(*servers, "server") : "- servers") +
         (absent == 0 ? "" : fmt::format(", {} absent", absent));
}

}  // namespace gradcube::cli
