#include "dataplane/bed/flows_request.h"

#include <algorithm>
#include <cstddef>

#include "control/base/errors.h"
#include "control/settings/ask_daemons.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

std::vector<std::string> jobs_of_flows(const nlohmann::json& request) {
  for (const auto& [name, value] : request.items()) {
    if (name != "command" && name != "jobs") {
      throw control::UsageError("flows: there is no \"" + name + "\": expected \"jobs\"");
    }
  }
  const nlohmann::json jobs = request.value("jobs", nlohmann::json::array());
  const auto is_text = [](const nlohmann::json& job) { return job.is_string(); };
  if (jobs.is_array() && std::ranges::all_of(jobs, is_text)) return jobs;
  throw control::UsageError("flows: \"jobs\" must be a list of the names of jobs");
}

Json flows_of(const std::vector<std::filesystem::path>& sockets, const nlohmann::json& request) {
  const Json asked = {{"command", "flows"}, {"jobs", jobs_of_flows(request)}};
  std::size_t count = 0;
  Json flows = Json::array();
  for (const auto& [answer, why, usage, refused, error] :
       control::ask_daemons(sockets, asked, control::kAnswerPatience)) {
    if (!answer.is_object()) continue;
    count += answer.value("flow_count", std::size_t{0});
    for (const Json& flow : answer.value("flows", Json::array())) flows.push_back(flow);
  }
  return {{"flow_count", count}, {"flows", std::move(flows)}};
}

}  // namespace gradcube::dataplane
