// Writes JSON, and reads fields of what another program wrote, in which any field may be missing or
// have another type.
//
// A path is keys joined by '/': "memory/pool_bytes". A field that is missing or has another type is
// empty.
#ifndef GRADCUBE_CLI_TEXT_JSON_FIELDS_H_
#define GRADCUBE_CLI_TEXT_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "control/base/json_text.h"

namespace gradcube::cli {

using control::json_text;

// The null value where there is nothing at this path.
const nlohmann::json& field(const nlohmann::json& object, std::string_view path);

std::optional<double> number_field(const nlohmann::json& object, std::string_view path);
std::optional<std::uint64_t> count_field(const nlohmann::json& object, std::string_view path);
std::optional<std::string> text_field(const nlohmann::json& object, std::string_view path);
std::optional<bool> flag_field(const nlohmann::json& object, std::string_view path);

// The array at this key; an empty one where there is none.
const nlohmann::json& items(const nlohmann::json& object, std::string_view key);

// An address as people write it, "[2,1]"; "-" for anything that is neither an array of numbers nor
// a text.
std::string address_text(const nlohmann::json& address);

// A number that names something: without separators, so that it can be searched for; "-" where
// there is none.
std::string id_text(const nlohmann::json& object, std::string_view path);

// "1.23 MB"; "-" where there is none.
std::string bytes_text(const nlohmann::json& object, std::string_view path);

// Any scalar as a cell of a table, text with control characters escaped; "-" where there is none.
std::string cell_text(const nlohmann::json& object, std::string_view path);

// --- The topology of a status.

// "[3,1] [3,2]" of a list of addresses; empty if it is.
std::string addresses_text(const nlohmann::json& addresses);

// Of the addresses that have no server: "[3,1] [3,2]". Empty if there are none.
std::string absent_text(const nlohmann::json& topology);

// "13 servers, 3 absent", "9 servers".
std::string servers_count_text(const nlohmann::json& topology);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_JSON_FIELDS_H_
