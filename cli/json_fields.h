// Reads fields of JSON that another program wrote, without believing that they are there or of the
// type expected.
//
// A path is keys joined by '/': "memory/pool_bytes". A missing field, or one of another type, is
// empty.
#ifndef GRADCUBE_CLI_JSON_FIELDS_H_
#define GRADCUBE_CLI_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gradcube::cli {

// The null value where there is nothing at this path.
const nlohmann::json& field(const nlohmann::json& object, std::string_view path);

std::optional<double> number_field(const nlohmann::json& object, std::string_view path);
std::optional<std::uint64_t> count_field(const nlohmann::json& object, std::string_view path);
std::optional<std::string> text_field(const nlohmann::json& object, std::string_view path);
std::optional<bool> flag_field(const nlohmann::json& object, std::string_view path);

// An address as people write it, "[2,1]"; "-" for anything that is not an array of numbers. A
// string stays as it is.
std::string address_text(const nlohmann::json& address);

// Any scalar as a cell of a table; "-" where there is none.
std::string cell_text(const nlohmann::json& object, std::string_view path);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_JSON_FIELDS_H_
