// The part of a status that a tenant of the daemon sees: what concerns all, and of jobs, hubs and
// memory what is his. Flows, which do not say whose they are, are left out, and whom else the
// daemon serves.
//
// Pure function; any thread.
#ifndef GRADCUBE_CONTROL_STATUS_STATUS_FOR_H_
#define GRADCUBE_CONTROL_STATUS_STATUS_FOR_H_

#include <cstdint>
#include <nlohmann/json.hpp>

namespace gradcube::control::status {

// A job is a user's if one of its trainers is.
nlohmann::ordered_json status_for(nlohmann::ordered_json status, std::uint32_t user);

}  // namespace gradcube::control::status

#endif  // GRADCUBE_CONTROL_STATUS_STATUS_FOR_H_
