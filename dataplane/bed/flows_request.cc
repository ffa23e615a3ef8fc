#include "dataplane/bed/flows_request.h"

#include <cstdint>
#include <limits>

#include "control/base/errors.h"
#include "control/settings/ask_daemons.h"

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

Json request_from(std::size_t from) { return {{"command", "flows"}, {"from", from}}; }

}  // namespace

std::size_t first_flow(const nlohmann::json& request) {
  const auto from = request.find("from");
  if (from == request.end() || !from->is_number_unsigned()) {
    throw control::UsageError("flows: \"from\" must be the number of a flow, from 0 on");
  }
  return from->get<std::size_t>();
}

Json flows_of(const std::vector<std::filesystem::path>& sockets, std::size_t from) {
  const auto count_of = [](const control::DaemonAnswer& answer) {
    return answer.answer.is_object() ? answer.answer.value("flow_count", std::size_t{0}) : 0;
  };
  std::size_t all = 0;
  Json flows = Json::array();
  const std::vector<control::DaemonAnswer> counts = control::ask_daemons(
      sockets, request_from(std::numeric_limits<std::uint32_t>::max()), control::kAnswerPatience);
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const std::size_t own = count_of(counts[i]);
    if (flows.empty() && from >= all && from - all < own) {
      const control::DaemonAnswer answer =
          control::ask_daemons({sockets[i]}, request_from(from - all), control::kAnswerPatience)
              .front();
      if (answer.answer.is_object()) flows = answer.answer.value("flows", Json::array());
    }
    all += own;
  }
  return {{"flow_count", all}, {"flows", std::move(flows)}};
}

}  // namespace gradcube::dataplane
