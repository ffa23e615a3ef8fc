// An agent of job "mnist" on server 1 of three, under a clock that the test moves, and what comes
// out of it.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_JOB_AGENT_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_JOB_AGENT_FIXTURE_H_

#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "control/jobs/machines/job_agent.h"

namespace gradcube::control {

using std::chrono::milliseconds;

inline const bcube::AddressSpace kSpace(std::vector<unsigned>{3});
inline constexpr JobEnd kSelf{1, 10, 4};
inline constexpr JobEnd kLeader{0, 20, 0};
inline constexpr JobEnd kZero{0, 20, 9};
inline constexpr JobEnd kTwo{2, 30, 6};
inline constexpr JobId kJob = 77;

inline bool is(const JobEnd& end, bcube::ServerId server) { return end.server == server; }
inline bool is(const JobEnd& end, const JobEnd& other) { return end == other; }

// To a server, or to one of its agents alone.
template <typename Body, typename Receiver>
std::vector<Body> sent(const JobActions& actions, const Receiver& to) {
  std::vector<Body> bodies;
  for (const JobAction& action : actions) {
    const auto* message = std::get_if<JobMessage>(&action);
    if (message == nullptr || !is(message->to, to)) continue;
    if (const auto* body = std::get_if<Body>(&message->body)) bodies.push_back(*body);
  }
  return bodies;
}

template <typename Body>
Body first(const JobActions& actions, bcube::ServerId to) {
  const std::vector<Body> bodies = sent<Body>(actions, to);
  if (!bodies.empty()) return bodies.front();
  ADD_FAILURE() << "no such message to server " << to;
  return {};
}

template <typename Command>
bool ordered(const JobActions& actions) {
  for (const JobAction& action : actions) {
    const auto* order = std::get_if<ToEngines>(&action);
    if (order != nullptr && std::holds_alternative<Command>(order->command)) return true;
  }
  return false;
}

template <typename Notice>
std::optional<Notice> told(const JobActions& actions) {
  for (const JobAction& action : actions) {
    const auto* notice = std::get_if<ToTrainer>(&action);
    if (notice != nullptr && std::holds_alternative<Notice>(notice->notice)) {
      return std::get<Notice>(notice->notice);
    }
  }
  return std::nullopt;
}

class JobAgentTest : public testing::Test {
 protected:
  JobAgentTest()
      : agent_(kSelf, {"mnist", 1, {71, 7}, {{{"bml", 0}}, 1, {0, 1, 2}}, std::nullopt},
               {1500, 64, false}, kSpace, timing_, Instant{}) {}

  JobActions hear(JobBody body, JobEnd from = kLeader) {
    JobActions out;
    agent_.on_message({from, kSelf, kJob, "mnist", std::move(body)}, {now_, out});
    return out;
  }
  JobActions happen(JobEvent event) {
    JobActions out;
    agent_.on_event(event, {now_, out});
    return out;
  }
  JobActions wait(Instant time) {
    JobActions out;
    now_ += time;
    agent_.on_time({now_, out});
    return out;
  }
  JobActions prepare() {
    JobDescriptor job;
    job.id = kJob;
    job.name = "mnist";
    job.options = {{{"bml", 0}}, 1, {0, 1, 2}};
    job.members = {{0, 0, 20, 9}, {1, 1, 10, 4}, {2, 2, 30, 6}};
    return hear(Prepare{job});
  }
  void run() {
    prepare();
    happen(event::EnginesArmed{});
    hear(Start{0});
  }
  void hold() {
    run();
    hear(Hold{0, "a trainer left", std::nullopt});
    happen(event::EnginesHeld{{5}, {4}, {}, {}});
  }

  JobTiming timing_;
  Instant now_{};
  JobAgent agent_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_JOB_AGENT_FIXTURE_H_
