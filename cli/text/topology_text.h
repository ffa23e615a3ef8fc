// The topology of a daemon's status as text.
//
// Pure functions.
#ifndef GRADCUBE_CLI_TEXT_TOPOLOGY_TEXT_H_
#define GRADCUBE_CLI_TEXT_TOPOLOGY_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

// "bcube:3,2" from {"kind":"bcube","n":3,"k":2,"servers":9}, "bcube:4x3" from one with "radices":
// what --topology takes. Empty when it cannot be told.
std::string topology_text(const nlohmann::json& topology);

// "[3,1] [3,2]" of a list of addresses; empty if it is.
std::string addresses_text(const nlohmann::json& addresses);

// Of the addresses that have no server: "[3,1] [3,2]". Empty if there are none.
std::string absent_text(const nlohmann::json& topology);

// "13 servers, 3 absent", "9 servers".
std::string servers_count_text(const nlohmann::json& topology);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_TOPOLOGY_TEXT_H_
