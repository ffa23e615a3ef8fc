// {"command":"flows","from":1000}: the flows of a status that has too many of them, part by part.
//
// A daemon answers with those from this one on, as many as one answer has, and with how many there
// are. A test bed asks its daemons, whose flows come one daemon after the other.
#ifndef GRADCUBE_DATAPLANE_BED_FLOWS_REQUEST_H_
#define GRADCUBE_DATAPLANE_BED_FLOWS_REQUEST_H_

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace gradcube::dataplane {

// Throws control::UsageError.
std::size_t first_flow(const nlohmann::json& request);

// A daemon that does not answer has none.
nlohmann::ordered_json flows_of(const std::vector<std::filesystem::path>& sockets,
                                std::size_t from);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_FLOWS_REQUEST_H_
