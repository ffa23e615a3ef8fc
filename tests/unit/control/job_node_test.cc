#include "control/jobs/machines/job_node.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradcube::control {
namespace {

using bcube::ServerId;
using Servers = std::vector<ServerId>;

const bcube::AddressSpace kNodeSpace(std::vector<unsigned>{3});

JobOptions options_of(std::vector<ServerId> members = {0, 1, 2}) {
  return {{{"bml", 0}, {"bml", 1}}, 1, std::move(members)};
}

Join join_of() { return {{7, 7}, options_of(), std::nullopt, {1500, 64, false}}; }

template <typename Body>
std::vector<Body> sent_to_anyone(const JobActions& actions) {
  std::vector<Body> bodies;
  for (const JobAction& action : actions) {
    const auto* message = std::get_if<JobMessage>(&action);
    if (message == nullptr) continue;
    if (const auto* body = std::get_if<Body>(&message->body)) bodies.push_back(*body);
  }
  return bodies;
}

TEST(JobNode, IgnoresWhatWasMeantForItsPredecessor) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  const auto joined = node.join({"mnist", 0, {1, 1}, options_of(), std::nullopt}, {}, {}, out);
  out.clear();
  node.on_message({{1, 11, 5}, {0, 9, std::get<Attempt>(joined)}, 3, "mnist", Abort{}}, {}, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(node.agents().size(), 1u);
}

TEST(JobNode, EndsTheJobsOfADaemonThatWasRestarted) {
  JobNode node(1, 10, kNodeSpace, {}, 1);
  JobActions out;
  ASSERT_TRUE(std::holds_alternative<Attempt>(
      node.join({"mnist", 1, {1, 1}, options_of(), std::nullopt}, {}, {}, out)));
  node.on_heard(0, 7, Instant{}, out);
  node.on_heard(0, 6, Instant{}, out);
  EXPECT_FALSE(node.idle()) << "no leader has answered before the restart";
  node.on_message({{0, 6, 0}, {1, 10, 1}, 3, "mnist", Pending{"somebody"}}, {}, out);
  node.on_heard(0, 5, Instant{}, out);
  EXPECT_TRUE(node.idle()) << "the leader has gone with the old daemon";
}

TEST(JobNode, AnswersForAgentsAndLeadersThatItDoesNotKnow) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  node.on_message({{1, 11, 5}, {0, 10, 99}, 3, "mnist", Pending{}}, {}, out);
  EXPECT_EQ(sent_to_anyone<Unknown>(out).size(), 1u);
  out.clear();
  node.on_message({{1, 11, 5}, {0, 10, 0}, 3, "mnist", Started{}}, {}, out);
  EXPECT_EQ(sent_to_anyone<Unknown>(out).size(), 1u);
  out.clear();
  node.on_message({{1, 11, 5}, {0, 10, 0}, 3, "mnist", Unknown{}}, {}, out);
  EXPECT_TRUE(out.empty());
}

TEST(JobNode, RefusesMoreJobsThanItHolds) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  const auto join = [&](unsigned number) {
    const std::string name = "job" + std::to_string(number);
    return node.join({name, 0, {1, 1}, options_of(), std::nullopt}, {}, {}, out);
  };
  for (unsigned i = 0; i < kMaxJobs; ++i) ASSERT_TRUE(std::holds_alternative<Attempt>(join(i)));
  const auto refused = join(kMaxJobs);
  ASSERT_TRUE(std::holds_alternative<Refused>(refused));
  EXPECT_EQ(std::get<Refused>(refused).text,
            "job \"job64\" cannot start: server [0] already has 64 jobs, which is the most it "
            "holds");
}

TEST(JobNode, GivesAUserNoMoreJobsThanHeMayHave) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  node.set_jobs_per_user(2, {true});
  JobActions out;
  const auto join = [&](const std::string& name, std::uint32_t user) {
    return node.join({name, 0, {1, user}, options_of(), std::nullopt, JobOwner::of_user(user)}, {},
                     {}, out);
  };
  ASSERT_TRUE(std::holds_alternative<Attempt>(join("a", 7)));
  ASSERT_TRUE(std::holds_alternative<Attempt>(join("b", 7)));
  const auto refused = join("c", 7);
  ASSERT_TRUE(std::holds_alternative<Refused>(refused));
  EXPECT_EQ(std::get<Refused>(refused).text,
            "job \"c\" cannot start: user 7 has 2 jobs on server [0] and may have 2: end some, or "
            "start the cluster with a larger --user-jobs");
  EXPECT_TRUE(std::holds_alternative<Attempt>(join("c", 8)));
}

TEST(JobNode, LeavesJobsForOthersHoweverManyUsersTakeWhatTheyCan) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  node.set_jobs_per_user(kMaxJobs, {true});
  JobActions out;
  unsigned number = 0;
  const auto join = [&](std::uint32_t user) {
    return node.join({"job" + std::to_string(++number),
                      0,
                      {1, user},
                      options_of(),
                      std::nullopt,
                      JobOwner::of_user(user)},
                     {}, {}, out);
  };
  for (const auto& [user, has] :
       std::vector<std::pair<std::uint32_t, unsigned>>{{7, 32}, {8, 16}, {9, 8}, {10, 4}}) {
    for (unsigned i = 0; i < has; ++i) {
      ASSERT_TRUE(std::holds_alternative<Attempt>(join(user))) << user;
    }
    const auto refused = join(user);
    ASSERT_TRUE(std::holds_alternative<Refused>(refused)) << user;
    if (user != 7) continue;
    EXPECT_EQ(
        std::get<Refused>(refused).text,
        "job \"job33\" cannot start: user 7 has 32 jobs on server [0], and 32 of 64 are free; "
        "a user may have no more than are left for others: end some");
  }
}

TEST(JobNode, KeepsJobsOfOneNameApartWhoseOwnersDiffer) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  const JobOwner owners[] = {kOwnUser, JobOwner::of_user(0), JobOwner::of_user(7),
                             JobOwner::of_secret(0, 8), JobOwner::of_secret(2, 8)};
  for (const JobOwner& owner : owners) {
    ASSERT_TRUE(std::holds_alternative<Attempt>(
        node.join({"mnist", 0, {1, 1}, options_of(), std::nullopt, owner}, {}, {}, out)));
  }
  EXPECT_EQ(node.leaders().size(), std::size(owners));
  EXPECT_TRUE(std::holds_alternative<Refused>(
      node.join({"mnist", 0, {1, 1}, options_of(), std::nullopt, owners[2]}, {}, {}, out)));
  // A trainer of another server finds that of its owner, and is no member of the others.
  JobMessage message{{1, 11, 1}, {0, 0, 0}, protocol::kNoJob, "mnist", join_of(), owners[2]};
  out.clear();
  node.on_message(message, {}, out);
  unsigned with_it = 0;
  for (const auto& [id, leader] : node.leaders()) {
    if (leader.gathers_with(1)) {
      ++with_it;
      EXPECT_EQ(leader.owner(), owners[2]);
    }
  }
  EXPECT_EQ(with_it, 1u);
  // Nor does a leader look for its trainers in a job of another owner.
  for (const JobOwner& owner : {owners[2], JobOwner::of_user(8)}) {
    out.clear();
    node.on_message({{1, 11, 0}, {0, 0, 0}, protocol::kNoJob, "mnist", Seek{}, owner}, {}, out);
    EXPECT_EQ(sent_to_anyone<Elsewhere>(out).size(), owner == owners[2] ? 1u : 0u);
  }
}

// A Join of a trainer on the server, in a job of its own with these members.
JobMessage join_alone(ServerId server, unsigned number, const Servers& members) {
  Join join = join_of();
  join.options = options_of(members);
  return {
      {server, 11, number + 1}, {0, 0, 0}, protocol::kNoJob, "job" + std::to_string(number), join};
}

TEST(JobNode, GathersNoMoreForAnotherServerThanItMayHave) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  for (unsigned i = 0; i < kMostGatheredForOne; ++i) {
    node.on_message(join_alone(1, i, {0, 1}), {}, out);
  }
  EXPECT_GE(kMostGatheredForOne, kMaxJobs);
  EXPECT_EQ(node.leaders().size(), kMostGatheredForOne);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty());
  out.clear();
  node.on_message(join_alone(1, kMostGatheredForOne, {0, 1}), {}, out);
  EXPECT_EQ(node.leaders().size(), kMostGatheredForOne);
  ASSERT_EQ(sent_to_anyone<Refused>(out).size(), 1u);
  EXPECT_EQ(sent_to_anyone<Refused>(out)[0].text,
            "job \"job128\" cannot start: 128 jobs with trainers of server [1] wait for one on "
            "server [0], which is the most that it keeps for a server: let some begin or end "
            "first");
  out.clear();
  node.on_message(join_alone(2, 1'000, {0, 2}), {}, out);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty()) << "another server has its own";
  // Nor is a trainer of this server refused, nor one that joins a job that is there.
  EXPECT_TRUE(std::holds_alternative<Attempt>(
      node.join({"own", 0, {1, 1}, options_of(), std::nullopt}, {}, {}, out)));
  node.on_message(join_alone(1, 0, {0, 1}), {}, out);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty());
}

TEST(JobNode, GathersNoMoreForAllOthersThanItCanHold) {
  const bcube::AddressSpace space(std::vector<unsigned>{8});
  JobNode node(0, 10, space, {}, 1);
  JobActions out;
  for (unsigned i = 0; i < kMostGathered; ++i) {
    const ServerId server = 1 + i % 7;
    node.on_message(join_alone(server, i, {0, server}), {}, out);
  }
  EXPECT_EQ(node.leaders().size(), kMostGathered);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty());
  node.on_message(join_alone(3, kMostGathered, {0, 3}), {}, out);
  ASSERT_EQ(sent_to_anyone<Refused>(out).size(), 1u);
  EXPECT_EQ(sent_to_anyone<Refused>(out)[0].text,
            "job \"job256\" cannot start: 256 jobs wait for a trainer on server [0], which is the "
            "most that it keeps: let some begin or end first");
}

TEST(JobNode, GathersNoMoreForATenantThanItMayHaveWhateverSecretsItsJobsHave) {
  const bcube::AddressSpace space(std::vector<unsigned>{8});
  JobNode node(0, 10, space, {}, 1);
  JobActions out;
  const auto join_of_user = [&](std::uint32_t uid, unsigned number, JobOwner owner) {
    const ServerId server = 1 + number % 7;
    JobMessage message = join_alone(server, number, {0, server});
    std::get<Join>(message.body).trainer.uid = uid;
    message.owner = owner;
    node.on_message(message, {}, out);
  };
  for (unsigned i = 0; i < kMostGathered / 2; ++i) {
    join_of_user(7, i, i % 2 == 0 ? JobOwner::of_user(7) : JobOwner::of_secret(i, 1));
  }
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty());
  join_of_user(7, 200, JobOwner::of_secret(200, 1));
  ASSERT_EQ(sent_to_anyone<Refused>(out).size(), 1u);
  EXPECT_EQ(
      sent_to_anyone<Refused>(out)[0].text,
      "job \"job200\" cannot start: 128 jobs of user 7 wait for a trainer on server [0], which "
      "leaves no more for others: let some begin or end first");
  out.clear();
  for (unsigned i = 300; i < 300 + kMostGathered / 4; ++i) join_of_user(8, i, JobOwner::of_user(8));
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty()) << "another user has half of the rest";
  join_of_user(8, 500, JobOwner::of_user(8));
  EXPECT_EQ(sent_to_anyone<Refused>(out).size(), 1u);
  out.clear();
  join_of_user(9, 501, JobOwner::of_user(9));
  join_of_user(7, 502, kOwnUser);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty()) << "another user, and the daemon's own";
}

TEST(JobNode, GathersJobsOfSeveralTenantsOnOneServer) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  unsigned number = 0;
  for (const auto& [user, has] :
       std::vector<std::pair<std::uint32_t, unsigned>>{{7, 64}, {8, 32}, {9, 16}}) {
    for (unsigned i = 0; i <= has; ++i) {
      EXPECT_TRUE(sent_to_anyone<Refused>(out).empty()) << user;
      JobMessage message = join_alone(1, ++number, {0, 1});
      std::get<Join>(message.body).trainer.uid = user;
      message.owner = JobOwner::of_user(user);
      node.on_message(message, {}, out);
    }
    EXPECT_EQ(sent_to_anyone<Refused>(out).size(), 1u) << user;
    out.clear();
  }
}

TEST(JobNode, GathersAgainForAServerWhoseJobsHaveBegunOrEnded) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  for (unsigned i = 0; i < kMostGatheredForOne; ++i) {
    node.on_message(join_alone(1, i, {0, 1}), {}, out);
  }
  const JobId left = node.leaders().begin()->first;
  const JobEnd who = node.leaders().at(left).agents().at(0);
  const std::string name = node.leaders().at(left).name();
  node.on_message({who, {0, 10, 0}, left, name, Leave{"left", false}}, {}, out);
  out.clear();
  node.on_message(join_alone(1, 500, {0, 1}), {}, out);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty()) << "one has ended";
  node.on_message(join_alone(1, 501, {0, 1}), {}, out);
  EXPECT_EQ(sent_to_anyone<Refused>(out).size(), 1u);
  out.clear();
  const JobOptions options = options_of({0, 1});
  EXPECT_TRUE(std::holds_alternative<Attempt>(
      node.join({"job500", 0, {1, 1}, options, std::nullopt}, {}, {}, out)));
  node.on_message(join_alone(1, 501, {0, 1}), {}, out);
  EXPECT_TRUE(sent_to_anyone<Refused>(out).empty()) << "one has begun";
}

TEST(JobNode, TakesATrainerInPlaceOfOneThatHasGone) {
  JobNode node(1, 10, kNodeSpace, {}, 1);
  JobActions out;
  const JoinRequest request{"mnist", 1, {1, 1}, options_of(), std::nullopt};
  const auto old = node.join(request, {}, {}, out);
  node.on_event(std::get<Attempt>(old), event::TrainerLeft{"left", false}, {}, out);
  EXPECT_TRUE(std::holds_alternative<Attempt>(node.join(request, {}, {}, out)));
  EXPECT_TRUE(std::holds_alternative<Refused>(node.join(request, {}, {}, out)));
}

TEST(JobNode, BeginsNoJobForALateJoinOfOneThatHasEnded) {
  JobNode node(0, 10, kNodeSpace, {}, 1);
  JobActions out;
  const JobMessage join{{1, 11, 5}, {0, 0, 0}, protocol::kNoJob, "mnist", join_of()};
  node.on_message(join, {}, out);
  ASSERT_EQ(node.leaders().size(), 1u);
  const JobId id = node.leaders().begin()->first;
  node.on_message({{1, 11, 5}, {0, 10, 0}, id, "mnist", Leave{"it left"}}, {}, out);
  node.on_message({{1, 11, 5}, {0, 10, 0}, id, "mnist", Abort{}}, {}, out);
  ASSERT_TRUE(node.idle());
  out.clear();
  node.on_message(join, {}, out);
  EXPECT_TRUE(node.idle());
  node.on_message({{2, 12, 5}, {0, 0, 0}, protocol::kNoJob, "mnist", join_of()}, {}, out);
  ASSERT_EQ(node.leaders().size(), 1u);
  out.clear();
  node.on_message(join, {}, out);
  EXPECT_EQ(node.leaders().begin()->second.agents().size(), 1u) << "nor does it join a new one";
  ASSERT_EQ(sent_to_anyone<Abort>(out).size(), 1u);
  EXPECT_EQ(sent_to_anyone<Abort>(out)[0].why, "it left");
}

TEST(JobNode, KeepsAJobWhoseMemberWasRestartedBeforeItJoined) {
  JobNode node(2, 12, kNodeSpace, {}, 1);
  JobActions out;
  const auto joined = node.join({"mnist", 2, {1, 1}, options_of(), std::nullopt}, {}, {}, out);
  const auto attempt = std::get<Attempt>(joined);
  node.on_heard(1, 11, {}, out);
  JobDescriptor job;
  job.id = 3;
  job.name = "mnist";
  job.options = options_of();
  job.members = {{0, 0, 10, 1}, {1, 1, 13, 1}, {2, 2, 12, attempt}};
  node.on_message({{0, 10, 0}, {2, 12, attempt}, 3, "mnist", Prepare{job}}, {}, out);
  EXPECT_EQ(node.watched(), (Servers{0, 1}));
  node.on_heard(1, 13, {}, out);
  EXPECT_FALSE(node.agent(attempt)->is_ending());
}

TEST(JobNode, GreetsTheServersOfItsJobsAndWatchesThemOnceTheyAreSetUp) {
  JobNode node(1, 10, kNodeSpace, {}, 1);
  JobActions out;
  EXPECT_TRUE(node.greeted().empty());
  ASSERT_TRUE(std::holds_alternative<Attempt>(
      node.join({"mnist", 1, {1, 1}, options_of(), std::nullopt}, {}, {}, out)));
  EXPECT_EQ(node.greeted(), (Servers{0, 2}));
  EXPECT_TRUE(node.watched().empty());
}

TEST(JobNode, SaysOfASilentDaemonWhetherAnyWayLeadsThere) {
  for (const bool no_way : {false, true}) {
    JobNode node(1, 10, kNodeSpace, {}, 1);
    JobActions out;
    ASSERT_TRUE(std::holds_alternative<Attempt>(
        node.join({"mnist", 1, {1, 1}, options_of(), std::nullopt}, {}, {}, out)));
    out.clear();
    node.on_server_silent(0, no_way, {}, out);
    EXPECT_TRUE(out.empty()) << "the leader has not been heard of yet";
    node.on_message({{0, 20, 0}, {1, 10, 1}, 7, "mnist", Pending{"all"}}, {}, out);
    out.clear();
    node.on_server_silent(0, no_way, {}, out);
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(std::get<notice::Ended>(std::get<ToTrainer>(out[0]).notice).why,
              std::string("nothing is heard of the daemon on server [0]") +
                  (no_way ? ": links are down, and no other way leads there" : ""));
  }
}

TEST(JobNode, AnswersAnInquiryAboutAJobThatHasEnded) {
  JobNode node(1, 10, kNodeSpace, {}, 1);
  JobActions out;
  node.on_event(99, event::Asked{7, {0, 2}}, {}, out);
  ASSERT_EQ(out.size(), 1u);
  const auto& report = std::get<notice::Report>(std::get<ToTrainer>(out[0]).notice);
  EXPECT_EQ(report.inquiry, 7u);
  EXPECT_EQ(report.missing, "the job has ended");
}

TEST(JobNode, RefusesASecondTrainerOfTheSameJobAndBadRequests) {
  JobNode node(1, 10, kNodeSpace, {}, 1);
  JobActions out;
  const auto refused = [&](const JoinRequest& request) {
    return std::holds_alternative<Refused>(node.join(request, {}, {}, out));
  };
  const JoinRequest good{"mnist", 1, {1, 1}, options_of(), std::nullopt};
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused(good));
  EXPECT_TRUE(refused({"a b", 1, {1, 1}, options_of(), std::nullopt}));
  EXPECT_TRUE(refused({"x", 1, {1, 1}, options_of({0, 2}), std::nullopt}));
  EXPECT_TRUE(refused({"x", 1, {1, 1}, options_of({1, 0}), std::nullopt}));
  EXPECT_TRUE(refused({"x", 1, {1, 1}, options_of({1, 3}), std::nullopt}));
  EXPECT_TRUE(refused({"x", 1, {1, 1}, options_of(), 3}));
}

}  // namespace
}  // namespace gradcube::control
