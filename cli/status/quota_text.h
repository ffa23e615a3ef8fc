// Whom the daemon serves, what each user may have of it, and what each has.
#ifndef GRADCUBE_CLI_STATUS_QUOTA_TEXT_H_
#define GRADCUBE_CLI_STATUS_QUOTA_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

// "8 GB of trainers' buffers, 32 jobs on a server and 64 trainers per user; user 1000 has 1.5 MB,
// jobs 3 of 32, trainers 6 of 64". Of a status that a tenant has got, himself alone.
std::string quota_text(const nlohmann::json& status);

// "users alice, 1001; groups ml"; empty where only the daemon's own user is served, and for
// tenants.
std::string allowed_text(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_QUOTA_TEXT_H_
