#include "control/jobs/disagreement_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "control/jobs/collective_text.h"

namespace gradcube::control {

std::string disagreement_text(const std::string& job, std::size_t lanes, CollectiveName collective,
                              const std::vector<Submitted>& submitted, const std::string& met,
                              const bcube::AddressSpace& space) {
  std::map<std::string, std::vector<std::string>> servers_by_request;
  for (const Submitted& each : submitted) {
    servers_by_request[each.what].push_back(space.text(each.server));
  }
  std::vector<std::string> parts;
  for (const auto& [request, servers] : servers_by_request) {
    parts.push_back(fmt::format("{} submitted {}", fmt::join(servers, " "), request));
  }
  return fmt::format(
      "{}: the trainers disagree on kind, count, type, operation or root: {} (met at {}); all "
      "trainers must submit the same collectives in the same order",
      collective_text(job, lanes, collective), fmt::join(parts, "; "), met);
}

}  // namespace gradcube::control
