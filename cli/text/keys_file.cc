#include "cli/text/keys_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "aggregation/element.h"
#include "cli/text/json_fields.h"
#include "cli/text/json_file.h"
#include "control/base/printable.h"

namespace gradcube::cli {

std::vector<control::HubKey> read_keys_file(const std::string& path) {
  const JsonFile file(
      "--keys", path,
      R"({"keys": [{"name": "conv1.weight", "elements": 9408, "dtype": "float32"}, )"
      R"(...]})");
  const nlohmann::json content = file.content();
  if (!field(content, "keys").is_array()) file.refuse("it has no list \"keys\"");
  std::vector<control::HubKey> keys;
  for (const nlohmann::json& item : items(content, "keys")) {
    const std::string place = fmt::format("key {}", keys.size());
    const auto name = text_field(item, "name");
    if (!name) file.refuse(place + " has no \"name\" that is a text");
    const auto elements = count_field(item, "elements");
    if (!elements) file.refuse(place + " has no \"elements\" that is a whole number");
    const auto type_name = text_field(item, "dtype");
    if (!type_name) file.refuse(place + " has no \"dtype\" that is a text");
    const auto type = aggregation::parse_data_type(*type_name);
    if (!type) {
      file.refuse(fmt::format("{} has the dtype {}", place, control::quoted(*type_name)));
    }
    keys.push_back({*name, *elements, *type});
  }
  return control::ordered_keys(std::move(keys), fmt::format("--keys {}", control::quoted(path)));
}

}  // namespace gradcube::cli
