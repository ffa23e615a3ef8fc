#include "control/jobs/job_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gradcube::control {
namespace {

constexpr std::size_t kMostMembersNamed = 8;

}  // namespace

std::string members_text(const std::vector<bcube::ServerId>& members,
                         const bcube::AddressSpace& space) {
  if (members.size() == space.servers()) return fmt::format("all {} servers", members.size());
  std::vector<std::string> names;
  const std::size_t named = std::min(members.size(), kMostMembersNamed);
  for (std::size_t i = 0; i < named; ++i) names.push_back(space.text(members[i]));
  std::string text = fmt::format("{} server{} {}", members.size(), members.size() == 1 ? "" : "s",
                                 fmt::join(names, " "));
  if (members.size() > named) text += fmt::format(" and {} more", members.size() - named);
  return text;
}

std::string describe(const JobOptions& options, const bcube::AddressSpace& space) {
  std::vector<std::string> lanes;
  for (const LaneOptions& lane : options.lanes) {
    lanes.push_back(lane.priority == 0
                        ? lane.algorithm
                        : fmt::format("{} (priority {})", lane.algorithm, lane.priority));
  }
  return fmt::format(
      "weight {}, lane{} {}, {}{}{}", options.weight, lanes.size() == 1 ? "" : "s",
      fmt::join(lanes, ", "), members_text(options.members, space),
      options.trainers == 1 ? "" : fmt::format(", {} trainers on each", options.trainers),
      options.reproducible ? ", reproducible" : "");
}

}  // namespace gradcube::control
