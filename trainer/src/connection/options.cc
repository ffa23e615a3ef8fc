#include "trainer/src/connection/options.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/base/sized.h"

namespace gradcube::trainer {
namespace {

constexpr std::size_t kFirstOptionsSize =
    offsetof(gradcube_options, member_count) + sizeof(gradcube_options::member_count);
constexpr std::size_t kLongestAlgorithmName = shared::kAlgorithmNameBytes - 1;
constexpr int kMostRank = 65535;

Failure invalid(const std::string& what) {
  return Failure(GRADCUBE_EINVAL, "invalid options: " + what);
}

gradcube_options sized(const gradcube_options* given) {
  gradcube_options options = GRADCUBE_OPTIONS_INIT;
  if (given == nullptr) return options;
  const std::string problem =
      read_sized(given, kFirstOptionsSize, "gradcube_options", "GRADCUBE_OPTIONS_INIT", options);
  if (!problem.empty()) throw Failure(GRADCUBE_EINVAL, problem);
  return options;
}

shared::Lane lane_of(const char* algorithm, int priority) {
  shared::Lane lane{};
  lane.priority = priority;
  if (algorithm == nullptr) return lane;
  const std::size_t length = ::strnlen(algorithm, shared::kAlgorithmNameBytes);
  if (length > kLongestAlgorithmName) {
    throw invalid("the algorithm's name " + in_quotes(std::string_view(algorithm, length)) +
                  " is too long: expected at most " + std::to_string(kLongestAlgorithmName) +
                  " characters (`gradcube plan --help` lists the algorithms)");
  }
  std::memcpy(lane.algorithm, algorithm, length);
  return lane;
}

std::vector<shared::Lane> lanes_of(const gradcube_options& options) {
  if (options.lanes == nullptr) {
    if (options.lane_count != 0) {
      throw invalid("lane_count is " + std::to_string(options.lane_count) +
                    " but lanes is NULL: expected 0");
    }
    return {lane_of(options.algorithm, 0)};
  }
  if (options.algorithm != nullptr) {
    throw invalid("algorithm and lanes are both given: expected one of them");
  }
  if (options.lane_count < 1 || options.lane_count > shared::kMaxLanes) {
    throw invalid("lane_count is " + std::to_string(options.lane_count) + ": expected 1 to " +
                  std::to_string(shared::kMaxLanes));
  }
  std::vector<shared::Lane> lanes;
  for (std::size_t i = 0; i < options.lane_count; ++i) {
    lanes.push_back(lane_of(options.lanes[i].algorithm, options.lanes[i].priority));
  }
  return lanes;
}

std::vector<std::uint32_t> members_of(const gradcube_options& options) {
  if (options.members == nullptr) {
    if (options.member_count == 0) return {};
    throw invalid("member_count is " + std::to_string(options.member_count) +
                  " but members is NULL: expected 0");
  }
  if (options.member_count < 1 || options.member_count > shared::kMaxMembers) {
    throw invalid("member_count is " + std::to_string(options.member_count) + ": expected 1 to " +
                  std::to_string(shared::kMaxMembers) + ", or members NULL for all servers");
  }
  std::vector<std::uint32_t> members(options.members, options.members + options.member_count);
  std::sort(members.begin(), members.end());
  const auto twice = std::adjacent_find(members.begin(), members.end());
  if (twice != members.end()) {
    throw invalid("members names server " + std::to_string(*twice) +
                  " twice: expected each server once");
  }
  return members;
}

void check_place(const gradcube_options& options) {
  const unsigned trainers = options.trainers_per_server;
  if (trainers < 1 || trainers > shared::kMaxLocalTrainers) {
    throw invalid("trainers_per_server is " + std::to_string(trainers) + ": expected 1 to " +
                  std::to_string(shared::kMaxLocalTrainers));
  }
  if (options.local < -1 || options.local >= static_cast<int>(trainers)) {
    throw invalid("local is " + std::to_string(options.local) + ": expected 0 to " +
                  std::to_string(trainers - 1) +
                  ", below trainers_per_server, or -1 for any place that is free");
  }
}

}  // namespace

Options read_options(const gradcube_options* given) {
  const gradcube_options options = sized(given);
  if (options.weight < 1 || options.weight > shared::kMostWeight) {
    throw invalid("weight is " + std::to_string(options.weight) + ": expected 1 to " +
                  std::to_string(shared::kMostWeight));
  }
  if (options.rank < -1 || options.rank > kMostRank) {
    throw invalid("rank is " + std::to_string(options.rank) + ": expected 0 to " +
                  std::to_string(kMostRank) + ", or -1 for the server's place");
  }
  check_place(options);
  if (options.reproducible != 0 && options.reproducible != 1) {
    throw invalid("reproducible is " + std::to_string(options.reproducible) + ": expected 0 or 1");
  }
  return {.lanes = lanes_of(options),
          .weight = options.weight,
          .rank = options.rank,
          .members = members_of(options),
          .reproducible = options.reproducible == 1,
          .trainers = options.trainers_per_server,
          .local = options.local};
}

}  // namespace gradcube::trainer
