#include "control/jobs/collective_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace gradcube::control {

std::string collective_text(const std::string& job, std::size_t lanes, CollectiveName collective) {
  if (collective.number == kMessageNumber) return fmt::format("a message of job \"{}\"", job);
  const std::string lane = lanes > 1 ? fmt::format(" of lane {}", collective.lane) : "";
  return fmt::format("collective {}{} of job \"{}\"", collective.number, lane, job);
}

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

std::string failed_text(const JobCut& cut) {
  std::vector<std::string> lanes;
  for (std::size_t lane = 0; lane < cut.failed.size(); ++lane) {
    const std::uint64_t first = cut.done[lane] + 1;
    const std::uint64_t last = cut.failed[lane];
    if (last < first) continue;
    std::string text = first == last ? fmt::format("collective {}", first)
                                     : fmt::format("collectives {} to {}", first, last);
    if (cut.failed.size() > 1) text += fmt::format(" of lane {}", lane);
    lanes.push_back(std::move(text));
  }
  return lanes.empty() ? "" : fmt::format("; failed: {}", fmt::join(lanes, ", "));
}

}  // namespace gradcube::control
