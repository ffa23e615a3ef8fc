// The leader of a job on three servers, under a clock that the test moves, and what comes out of
// it. The test speaks for the members.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_JOB_LEADER_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_JOB_LEADER_FIXTURE_H_

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/jobs/machines/job_leader.h"

namespace gradcube::control {

using bcube::ServerId;
using std::chrono::milliseconds;

template <typename Body>
std::vector<ServerId> asked(const JobActions& actions) {
  std::vector<ServerId> servers;
  for (const JobAction& action : actions) {
    const auto& message = std::get<JobMessage>(action);
    if (std::holds_alternative<Body>(message.body)) servers.push_back(message.to.server);
  }
  return servers;
}

template <typename Body>
Body first(const JobActions& actions) {
  for (const JobAction& action : actions) {
    const auto& message = std::get<JobMessage>(action);
    if (const auto* body = std::get_if<Body>(&message.body)) return *body;
  }
  ADD_FAILURE() << "no such message";
  return Body{};
}

class JobLeaderTest : public testing::Test {
 protected:
  using Servers = std::vector<bcube::ServerId>;
  using Phase = JobLeader::Phase;

  inline static const bcube::AddressSpace kSpace{std::vector<unsigned>{3}};
  static constexpr JobEnd kSelf{0, 10, 0};

  static JobOptions options_of(std::vector<ServerId> members = {0, 1, 2}) {
    return {{{"bml", 0}, {"bml", 1}}, 1, std::move(members)};
  }
  static Join join_of(std::uint32_t segment_bytes = 1500) {
    return {{7, 7}, options_of(), std::nullopt, {segment_bytes, 64, false}};
  }
  static JobEnd agent(ServerId server) { return {server, 10 + server, 5}; }

  JobActions hear(ServerId from, JobBody body) { return hear(agent(from), std::move(body)); }
  JobActions hear(JobEnd from, JobBody body) {
    JobActions out;
    leader_.on_message({from, kSelf, 77, "mnist", std::move(body)}, {now_, out});
    note_asked(out);
    return out;
  }
  // As the newest Hold asks.
  Held held(Epoch epoch, LaneNumbers published, LaneNumbers completed,
            std::vector<Disagreement> disagreements, std::string submitted) const {
    LaneNumbers reached = published;
    return {epoch,  std::move(published), std::move(completed), std::move(disagreements),
            asked_, std::move(submitted), std::move(reached)};
  }
  // A failure that server 1 meets when all have submitted what comes before it.
  JobActions fail(const Disagreement& what) {
    JobActions out = hear(1, Disagree{0, what});
    if (what.collective > 1) out = all(Counts{0, 7, {100, 100}, {}});
    return out;
  }
  JobActions all(const JobBody& body) {
    hear(0, body);
    hear(1, body);
    return hear(2, body);
  }
  JobActions wait(Instant time) {
    JobActions out;
    now_ += time;
    leader_.on_time({now_, out});
    note_asked(out);
    return out;
  }
  void note_asked(const JobActions& actions) {
    for (const JobAction& action : actions) {
      const auto* hold = std::get_if<Hold>(&std::get<JobMessage>(action).body);
      if (hold != nullptr) asked_ = hold->asked;
    }
  }
  void run(std::uint32_t trainers = 1) {
    Join join = join_of();
    join.options.trainers = join.trainers = trainers;
    leader_ = JobLeader(kSelf, 77, "mnist", join.options, kSpace, timing_);
    all(join);
    all(Armed{0});
    all(Started{0});
    ASSERT_EQ(leader_.phase(), Phase::running);
  }

  JobTiming timing_;
  Instant now_{};
  JobLeader leader_{kSelf, 77, "mnist", options_of(), kSpace, timing_};
  std::optional<CollectiveName> asked_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_JOB_LEADER_FIXTURE_H_
