// JSON as one line.
#ifndef GRADCUBE_CONTROL_BASE_JSON_TEXT_H_
#define GRADCUBE_CONTROL_BASE_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::control {

// Bytes that are no UTF-8, which names and paths may have, are replaced.
template <typename Json>
std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_JSON_TEXT_H_
