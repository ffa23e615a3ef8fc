// How trainers open their sessions, ask, and leave.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "dataplane/daemon/process/connection_limit.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/sessions_fixture.h"

namespace gradcube::dataplane {
namespace {

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST_F(Sessions, AreOpenedByAHelloAndClosedByAGoodbye) {
  const Trainer trainer(paths_[0]);
  trainer.hello("job");
  run(100, [this] { return trainers() == 1; });
  EXPECT_EQ(nodes_.at(0).trainers(), 1u);
  trainer.say_goodbye();
  run(100, [this] { return trainers() == 0; });
  EXPECT_EQ(trainers(), 0u);
}

TEST_F(Sessions, OfAUserAreNoMoreThanHeMayHaveAtATime) {
  const std::map<bcube::ServerId, std::filesystem::path> path = {{1, directory_ / "few.sock"}};
  SessionServer few(loop_, nodes_, clock_, topology_.space(), path, quota_, {{}, 2});
  each_round = [&] { few.tick(SessionServer::SteadyClock::now()); };
  const Trainer first(path.at(1));
  auto second = std::make_unique<Trainer>(path.at(1));
  run(5);
  const Trainer third(path.at(1));
  std::string text;
  run(100, [&] { return !(text = third.told()).empty(); });
  EXPECT_EQ(text, "user " + std::to_string(getuid()) +
                      " has 2 trainers at this daemon and may have 2: end some, or start the "
                      "cluster with a larger --user-sessions");
  second.reset();
  run(5);
  const Trainer fourth(path.at(1));
  fourth.hello("job");
  run(100, [this] { return trainers() == 1; });
  EXPECT_EQ(trainers(), 1u) << "one that has gone has made room";
}

TEST_F(Sessions, OfAUserAreNoMoreThanTheyLeaveForOthers) {
  const std::map<bcube::ServerId, std::filesystem::path> path = {{1, directory_ / "fair.sock"}};
  const AllowedUsers others({"65534"}, {});
  SessionServer fair(loop_, nodes_, clock_, topology_.space(), path, quota_, {others, 100'000});
  // None is so late with its hello that it makes room.
  each_round = [&, now = SessionServer::SteadyClock::now()] { fair.tick(now); };
  std::vector<std::unique_ptr<Trainer>> many;
  std::string text;
  for (unsigned i = 0; i < 400 && text.empty(); ++i) {
    many.push_back(std::make_unique<Trainer>(path.at(1)));
    run(2);
    text = many.back()->told();
  }
  const std::size_t half = (control::kMaxJobs + kSpareConnections) / 2;
  EXPECT_LE(many.size() - 1, half);
  EXPECT_EQ(text, "user " + std::to_string(getuid()) + " has " + std::to_string(many.size() - 1) +
                      " trainers here, as many as are left for others: end some");
}

TEST_F(Sessions, JoinAFewInEachRound) {
  std::vector<std::unique_ptr<Trainer>> many;
  for (unsigned i = 0; i < 40; ++i) {
    many.push_back(std::make_unique<Trainer>(paths_[0]));
    many.back()->hello("job" + std::to_string(i));
  }
  unsigned before = 0;
  unsigned most = 0;
  each_round = [&] {
    most = std::max(most, trainers() - before);
    before = trainers();
  };
  run(100, [this] { return trainers() == 40; });
  run(2);
  EXPECT_EQ(trainers(), 40u);
  EXPECT_LE(most, SessionServer::kMostJoins);
  // One that goes before its turn comes leaves nothing behind.
  auto hasty = std::make_unique<Trainer>(paths_[1]);
  for (unsigned i = 0; i < 10; ++i) {
    many.push_back(std::make_unique<Trainer>(paths_[1]));
    many.back()->hello("job" + std::to_string(i));
  }
  hasty->hello("hasty");
  run(1);
  hasty.reset();
  run(50);
  EXPECT_EQ(trainers(), 50u);
}

// At each allocation of the round in which they join, in turn.
TEST_F(Sessions, AreThereOrAreToldThatTheyAreNotWhereTheDaemonHasNoMemory) {
  unsigned last = 0;
  unsigned most = 0;  // allocations of a round
  loop_.on_tick([&] {
    Trainer::answer_offers();
    unsigned asked = 0;
    try {
      const trainer::NoMemory none([&] { return ++asked >= last; });
      server_.tick(SessionServer::SteadyClock::now());
    } catch (const std::bad_alloc&) {
    }
    most = std::max(most, asked);
    clock_.advance();
    nodes_.run(clock_.now());
    nodes_.look(clock_.now());
    if (++rounds_ >= last_round_ || done_()) loop_.stop();
  });
  do {
    ASSERT_LT(++last, 2'000U);
    most = 0;
    SCOPED_TRACE(last);
    Trainer trainer(paths_[0]);
    trainer.hello("job");
    std::string text;
    run(200, [&] { return trainers() == 1 || !(text = trainer.told()).empty(); });
    EXPECT_TRUE(trainers() == 1 || text == "std::bad_alloc") << text;
    if (trainers() == 1) trainer.say_goodbye();
    run(200, [&] { return nodes_.idle(); });
    ASSERT_TRUE(nodes_.idle());
  } while (most >= last);
}

TEST_F(Sessions, ThatKnowDifferentSecretsAreInDifferentJobs) {
  const std::string secrets[] = {"", "the first secret", "the other secret", "the first secret"};
  std::vector<std::unique_ptr<Trainer>> trainers_here;
  for (const std::string& secret : secrets) {
    trainers_here.push_back(std::make_unique<Trainer>(paths_[0]));
    trainers_here.back()->hello("job", secret);
    run(20);
  }
  EXPECT_EQ(trainers(), 3u);
  EXPECT_NE(trainers_here.back()->told().find("already has a trainer on server [0]"),
            std::string::npos);
}

TEST_F(Sessions, AreToldWhichMemberThereIsNot) {
  const Trainer trainer(paths_[0]);
  trainer.hello_with_members("job", 9);
  std::string text;
  run(100, [&] { return !(text = trainer.told()).empty(); });
  EXPECT_NE(text.find("there is no server"), std::string::npos) << text;
}

TEST_F(Sessions, AreToldWhichDaemonEndsAndWhyWhereItHasOneServer) {
  const std::map<bcube::ServerId, std::filesystem::path> path = {{1, directory_ / "alone.sock"}};
  SessionServer alone(loop_, nodes_, clock_, topology_.space(), path, quota_);
  each_round = [&] { alone.tick(SessionServer::SteadyClock::now()); };
  const Trainer trainer(path.at(1));
  trainer.hello("job");
  run(100, [&] { return trainer.take_welcome(); });
  alone.set_closing_cause("its run directory is gone");
  alone.close();
  EXPECT_EQ(trainer.told(), "the daemon of [1] is shutting down: its run directory is gone");
}

TEST_F(Sessions, ThatAskWithoutEndDoNotKeepTheLoopFromOthers) {
  const Trainer other(paths_[1]);
  const Trainer curious(paths_[0]);
  curious.hello("job");
  other.hello("job");
  run(100, [this] { return trainers() == 2; });
  ASSERT_EQ(trainers(), 2u);
  // As from a client that is faster than the daemon: there is always another question.
  unsigned questions = 0;
  unsigned answers = 0;
  each_round = [&] {
    while (curious.ask(questions + 1)) ++questions;
    answers += static_cast<unsigned>(curious.reports().size());
  };
  const Trainer late(paths_[1]);
  late.hello("another");
  run(1'000, [this] { return trainers() == 3; });
  EXPECT_EQ(trainers(), 3u);
  run(50);
  EXPECT_GT(answers, 0u);
  EXPECT_LT(answers, questions / 2) << "every question was answered";
  each_round = {};
}

TEST_F(Sessions, AreReadAFewMessagesAtATime) {
  const Trainer curious(paths_[0]);
  curious.hello("job");
  run(100, [this] { return trainers() == 1; });
  unsigned sent = 0;
  while (sent < 10 * SessionServer::kMostMessages && curious.ask(sent + 1)) ++sent;
  ASSERT_GT(sent, 2 * SessionServer::kMostMessages);
  run(1);
  EXPECT_TRUE(curious.has_unread());
  const unsigned rounds = run(1'000, [&] { return !curious.has_unread(); });
  EXPECT_FALSE(curious.has_unread());
  EXPECT_GE(rounds, sent / SessionServer::kMostMessages - 1);
}

TEST_F(Sessions, GetAnAnswerToTheirNewestInquiry) {
  const Trainer curious(paths_[0]);
  curious.hello("job");
  run(100, [this] { return trainers() == 1; });
  constexpr std::uint64_t kLast = 100;
  for (std::uint64_t request = 1; request <= kLast; ++request) ASSERT_TRUE(curious.ask(request));
  std::vector<std::uint64_t> answered;
  run(1'000, [&] {
    for (const std::uint64_t request : curious.reports()) answered.push_back(request);
    return !answered.empty() && answered.back() == kLast;
  });
  ASSERT_FALSE(answered.empty());
  EXPECT_EQ(answered.back(), kLast);
  EXPECT_TRUE(std::is_sorted(answered.begin(), answered.end()));
  EXPECT_LT(answered.size(), kLast / 2);
}

TEST_F(Sessions, GetTheLastAnswerAgainAtOnceWhenTheyAskTheSame) {
  const Trainer impatient(paths_[0]);
  impatient.hello("job");
  run(100, [this] { return trainers() == 1; });
  for (unsigned i = 0; i < 10; ++i) {
    ASSERT_TRUE(impatient.ask(7));
    std::vector<std::uint64_t> answered;
    const unsigned rounds = run(100, [&] { return !(answered = impatient.reports()).empty(); });
    EXPECT_EQ(answered, std::vector<std::uint64_t>{7});
    EXPECT_LE(rounds, 5u);
  }
}

TEST_F(Sessions, EndInGoodOrderEvenWhenTheGoodbyeComesAfterManyInquiries) {
  const Trainer stays(paths_[1]);
  stays.hello("job");
  {
    const Trainer curious(paths_[0]);
    curious.hello("job");
    run(100, [this] { return trainers() == 2; });
    for (unsigned i = 0; i < 3 * SessionServer::kMostMessages; ++i) curious.ask(1);
    curious.say_goodbye();
  }
  run(1'000, [this] { return trainers() == 1; });
  ASSERT_EQ(trainers(), 1u);
  // A death would have been logged.
  EXPECT_TRUE(logged_.empty()) << logged_[0];
}

TEST_F(Sessions, AreLoggedWhenTheyAreRefusedOrEndBadly) {
  const Trainer stays(paths_[1]);
  stays.hello("job");
  auto dies = std::make_unique<Trainer>(paths_[0]);
  dies->hello("job");
  run(100, [this] { return trainers() == 2; });
  const Trainer third(paths_[0]);
  third.hello("job");
  run(100, [this] { return !logged_.empty(); });
  ASSERT_EQ(logged_.size(), 1u);
  const std::string pid = "(pid " + std::to_string(getpid()) + ")";
  for (const std::string& word : {std::string("refused"), std::string("server [0]"), pid,
                                  std::string("job \"job\" already has a trainer")}) {
    EXPECT_NE(logged_[0].find(word), std::string::npos) << logged_[0];
  }
  dies.reset();
  run(1'000, [this] { return logged_.size() == 3; });
  ASSERT_EQ(logged_.size(), 3u);
  EXPECT_EQ(logged_[1], "the trainer of job \"job\" on server [0] " + pid + " died");
  EXPECT_NE(logged_[2].find("job \"job\" is aborted"), std::string::npos) << logged_[2];
}

// Trainers whose job's leader, on server 0, cannot answer.
class WaitingSessions : public Sessions {
 protected:
  WaitingSessions() {
    nodes_.around().diverts = [](const control::NodeMessage& message, Instant) {
      return message.from == 0 && message.to == 1;  // and loses it
    };
  }

  std::unique_ptr<Trainer> join() {
    auto trainer = std::make_unique<Trainer>(paths_[1]);
    trainer->hello("job");
    run(100, [this] { return trainers() == 1; });
    EXPECT_EQ(trainers(), 1u);
    EXPECT_FALSE(trainer->is_welcomed());
    return trainer;
  }
  void expect_nothing_left() {
    EXPECT_EQ(trainers(), 0u);
    nodes_.around().diverts = nullptr;
    run(500, [this] { return nodes_.idle(); });
    run(2);
    EXPECT_TRUE(nodes_.idle());
    EXPECT_EQ(nodes_.trainer_bytes(), 0u);
  }
};

TEST_F(WaitingSessions, AreNotDisconnectedAsClientsThatSayNoHello) {
  const auto waits = join();
  const Trainer silent(paths_[1]);
  run(10);
  server_.tick(SessionServer::SteadyClock::now() + SessionServer::kHelloWithin +
               std::chrono::seconds(1));
  EXPECT_TRUE(silent.is_closed());
  EXPECT_FALSE(waits->is_closed());
  EXPECT_EQ(trainers(), 1u);
  nodes_.around().diverts = nullptr;
  run(100, [&] { return waits->is_welcomed(); });
  EXPECT_TRUE(waits->is_welcomed());
}

TEST_F(WaitingSessions, LeaveNothingBehindWhenTheirSocketCloses) {
  const std::ptrdiff_t before = open_descriptors();
  auto trainer = join();
  EXPECT_GT(open_descriptors(), before + 1);
  trainer.reset();
  run(100, [this] { return trainers() == 0; });
  expect_nothing_left();
  EXPECT_EQ(open_descriptors(), before);
  ASSERT_FALSE(logged_.empty());
  EXPECT_NE(logged_[0].find("died"), std::string::npos) << logged_[0];
}

TEST_F(WaitingSessions, MayBeClosedByAGoodbye) {
  const auto trainer = join();
  trainer->say_goodbye();
  run(100, [this] { return trainers() == 0; });
  EXPECT_TRUE(trainer->is_closed());
  expect_nothing_left();
  EXPECT_TRUE(logged_.empty()) << logged_[0];
}

TEST_F(WaitingSessions, AreClosedByAnyOtherMessageBeforeTheWelcome) {
  const std::vector<std::function<void(const Trainer&)>> messages{
      [](const Trainer& trainer) { trainer.ask(1); },
      [](const Trainer& trainer) { trainer.abort(); },
      [](const Trainer& trainer) { trainer.hello("job"); }};
  for (const auto& message : messages) {
    const auto trainer = join();
    message(*trainer);
    run(100, [this] { return trainers() == 0; });
    EXPECT_EQ(trainers(), 0u);
    const std::string text = trainer->told();
    EXPECT_NE(text.find("does not understand"), std::string::npos) << text;
    EXPECT_TRUE(trainer->is_closed());
  }
  expect_nothing_left();
}

TEST_F(WaitingSessions, AreToldWhyTheyAreRefused) {
  const auto trainer = join();
  run(500, [this] { return trainers() == 0; });
  const std::string text = trainer->told();
  EXPECT_NE(text.find("the daemon on server [0] does not answer"), std::string::npos) << text;
  EXPECT_TRUE(trainer->is_closed());
  expect_nothing_left();
}

}  // namespace
}  // namespace gradcube::dataplane
