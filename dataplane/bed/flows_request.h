// {"command":"flows","jobs":["mnist"]}: the flows of the jobs that it names, and without "jobs" of
// all. A daemon answers with how many there are, and with the first of them (status.h).
#ifndef GRADCUBE_DATAPLANE_BED_FLOWS_REQUEST_H_
#define GRADCUBE_DATAPLANE_BED_FLOWS_REQUEST_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gradcube::dataplane {

// Their names. Throws control::UsageError.
std::vector<std::string> jobs_of_flows(const nlohmann::json& request);

// Of a test bed: what its daemons answer to the request. One that does not answer has none.
nlohmann::ordered_json flows_of(const std::vector<std::filesystem::path>& sockets,
                                const nlohmann::json& request);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_FLOWS_REQUEST_H_
