#include "trainer/src/connection/options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

// `or_else` says what else is accepted.
void require(const char* name, std::int64_t value, std::int64_t least, std::int64_t most,
             const char* or_else = "") {
  if (value >= least && value <= most) return;
  throw invalid(std::string(name) + " is " + std::to_string(value) + ": expected " +
                std::to_string(least) + " to " + std::to_string(most) + or_else);
}

void require_none(const char* name, std::size_t count, const char* list) {
  if (count == 0) return;
  throw invalid(std::string(name) + " is " + std::to_string(count) + " but " + list +
                " is NULL: expected 0");
}

void set_lanes(const gradcube_options& options, shared::Hello& hello) {
  hello.lane_count = 1;
  if (options.lanes == nullptr) {
    require_none("lane_count", options.lane_count, "lanes");
    hello.lanes[0] = lane_of(options.algorithm, 0);
    return;
  }
  if (options.algorithm != nullptr) {
    throw invalid("algorithm and lanes are both given: expected one of them");
  }
  if (options.lane_count < 1 || options.lane_count > shared::kMaxLanes) {
    throw invalid("lane_count is " + std::to_string(options.lane_count) + ": expected 1 to " +
                  std::to_string(shared::kMaxLanes));
  }
  hello.lane_count = static_cast<std::uint32_t>(options.lane_count);
  std::transform(options.lanes, options.lanes + options.lane_count, hello.lanes,
                 [](const gradcube_lane& lane) { return lane_of(lane.algorithm, lane.priority); });
}

std::vector<std::uint32_t> members_of(const gradcube_options& options) {
  if (options.members == nullptr) {
    require_none("member_count", options.member_count, "members");
    return {};
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

}  // namespace

Wish read_options(const gradcube_options* given) {
  const gradcube_options options = sized(given);
  const std::int64_t trainers = options.trainers_per_server;
  require("weight", options.weight, 1, shared::kMostWeight);
  if (options.rank != -1) {
    require("rank", options.rank, 0, kMostRank, ", or -1 for the server's place");
  }
  require("trainers_per_server", trainers, 1, shared::kMaxLocalTrainers);
  if (options.local != -1) {
    require("local", options.local, 0, trainers - 1,
            ", below trainers_per_server, or -1 for any place that is free");
  }
  if (options.reproducible != 0 && options.reproducible != 1) {
    throw invalid("reproducible is " + std::to_string(options.reproducible) + ": expected 0 or 1");
  }
  Wish wish;
  wish.hello.rank = options.rank;
  wish.hello.weight = options.weight;
  wish.hello.trainers = static_cast<std::uint8_t>(trainers);
  wish.hello.local = static_cast<std::int16_t>(options.local);
  wish.hello.reproducible = options.reproducible == 1 ? 1 : 0;
  set_lanes(options, wish.hello);
  wish.members = members_of(options);
  wish.hello.member_count = static_cast<std::uint32_t>(wish.members.size());
  return wish;
}

}  // namespace gradcube::trainer
