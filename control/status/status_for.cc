#include "control/status/status_for.h"

#include <algorithm>
#include <functional>

namespace gradcube::control::status {

namespace {

// Those of a list that are his.
template <typename IsHis>
void keep(nlohmann::ordered_json& list, IsHis is_his) {
  list.erase(std::remove_if(list.begin(), list.end(), std::not_fn(is_his)), list.end());
}

}  // namespace

nlohmann::ordered_json status_for(nlohmann::ordered_json status, std::uint32_t user) {
  const auto is_his = [user](const nlohmann::ordered_json& what) {
    return what.value("uid", nlohmann::ordered_json()) == user;
  };
  status.erase("allowed");
  keep(status["jobs"], [&](const nlohmann::ordered_json& job) {
    const auto trainers = job.find("trainers");
    return trainers != job.end() && std::any_of(trainers->begin(), trainers->end(), is_his);
  });
  keep(status["hubs"], is_his);
  keep(status["memory"]["users"], is_his);
  status["flow_count"] = 0;
  status["flows"] = nlohmann::ordered_json::array();
  return status;
}

}  // namespace gradcube::control::status
