// What a trainer's memory may cost: its seals, its reports, and its user's quota.

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "dataplane/daemon/trainers/session_messages.h"
#include "tests/support/scarce_memory.h"
#include "tests/unit/dataplane/daemon/sessions_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kBegin = shared::kHeapOffset;

std::uint64_t resident_bytes(int file) {
  struct stat facts {};
  EXPECT_EQ(fstat(file, &facts), 0);
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

class SessionMemory : public Sessions {
 protected:
  // A job of two servers, each with a trainer.
  void join() {
    trainer_->hello("job");
    other_->hello("job");
    run(100, [this] { return trainer_->is_welcomed() && other_->is_welcomed(); });
    ASSERT_TRUE(trainer_->take_welcome());
    ASSERT_TRUE(other_->take_welcome());
  }
  shared::Notice report(const Trainer& trainer, std::uint64_t end, std::uint64_t wanted = 0) {
    EXPECT_TRUE(trainer.report_memory(end, wanted));
    std::optional<shared::Notice> answer;
    run(100, [&] { return (answer = trainer.confirmation()).has_value(); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(shared::Notice{});
  }
  std::uint64_t heap_of(bcube::ServerId server) {
    for (const MemberFacts& facts : nodes_.at(server).facts()) return facts.heap_bytes;
    return 0;
  }

  std::unique_ptr<Trainer> trainer_ = std::make_unique<Trainer>(paths_[0]);
  std::unique_ptr<Trainer> other_ = std::make_unique<Trainer>(paths_[1]);
};

TEST_F(SessionMemory, CannotBeCutOrPunchedOnceItIsSealed) {
  join();
  const int file = trainer_->region();
  trainer_->touch(kBegin, kBegin + kMiB);
  EXPECT_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kBegin, kMiB), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(file, 4096), -1);
  EXPECT_EQ(ftruncate(file, 1 << 30), -1);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED)
      << "a later mapping could not be written to";
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

// In a round in which the daemon reads what they say it has no memory from each allocation on, in
// turn.
TEST_F(SessionMemory, IsConfirmedOrItsTrainerIsToldWhereTheDaemonHasNone) {
  unsigned last = 0;
  unsigned asked = 0;
  unsigned most = 0;  // allocations of a round
  bool reports = false;
  bool reads = false;
  loop_.on_tick([&] {
    reads = false;
    most = std::max(most, std::exchange(asked, 0));
    clock_.advance();
    Trainer::answer_offers();
    server_.tick(SessionServer::SteadyClock::now());
    nodes_.run(clock_.now());
    nodes_.look(clock_.now());
    const bool over = ++rounds_ >= last_round_ || done_();
    if (over) loop_.stop();
    reads = reports && !over && most < last;  // there is some again after the first such round
  });
  const trainer::NoMemory none([&] { return reads && ++asked >= last; });
  do {
    ASSERT_LT(++last, 1'000U);
    SCOPED_TRACE(last);
    most = 0;
    trainer_ = std::make_unique<Trainer>(paths_[0]);
    other_ = std::make_unique<Trainer>(paths_[1]);
    join();
    trainer_->touch(kBegin, kBegin + kMiB);
    EXPECT_TRUE(trainer_->report_memory(kBegin + kMiB));
    std::optional<shared::Notice> answer;
    std::string text;
    reports = true;
    run(200, [&] {
      return (answer = trainer_->confirmation()).has_value() || !(text = trainer_->told()).empty();
    });
    reports = false;
    EXPECT_TRUE(answer.has_value() || text.find("has no memory") != std::string::npos) << text;
    trainer_.reset();
    other_.reset();
    run(400, [&] { return nodes_.idle(); });
    ASSERT_TRUE(nodes_.idle());
  } while (most >= last);
}

TEST_F(SessionMemory, IsRefusedUnsealedBeforeAnythingIsDoneWithIt) {
  trainer_->at_offer(Trainer::AtOffer::leave_unsealed);
  trainer_->hello("job");
  std::string text;
  run(100, [&] { return !(text = trainer_->told()).empty(); });
  EXPECT_NE(text.find("not sealed"), std::string::npos) << text;
  EXPECT_TRUE(trainer_->is_closed());
  EXPECT_EQ(trainers(), 0u);
}

TEST_F(SessionMemory, IsNotWaitedForWithoutEnd) {
  trainer_->at_offer(Trainer::AtOffer::wait);
  trainer_->hello("job");
  run(10);
  server_.tick(SessionServer::SteadyClock::now() + SessionServer::kHelloWithin +
               std::chrono::seconds(1));
  EXPECT_FALSE(trainer_->report_memory(kBegin)) << "it was disconnected";
  EXPECT_EQ(trainers(), 0u);
}

TEST_F(SessionMemory, IsConfirmedOnceItIsThere) {
  join();
  EXPECT_EQ(heap_of(0), 0u);
  trainer_->touch(kBegin, kBegin + 3 * kMiB);
  const shared::Notice answer = report(*trainer_, kBegin + 3 * kMiB);
  EXPECT_EQ(answer.code, GRADCUBE_OK) << answer.text;
  EXPECT_EQ(answer.request, kBegin + 3 * kMiB);
  EXPECT_EQ(heap_of(0), 3 * kMiB);
  EXPECT_EQ(heap_of(1), 0u);
  EXPECT_EQ(quota_.used(getuid()), 3 * kMiB);
  // What is confirmed already is confirmed again.
  EXPECT_EQ(report(*trainer_, kBegin + kMiB).request, kBegin + 3 * kMiB);
}

TEST_F(SessionMemory, ThatNobodyTouchedIsNeitherConfirmedNorAllocated) {
  join();
  const int file = trainer_->region();
  const std::uint64_t before = resident_bytes(file);
  const shared::Notice answer = report(*trainer_, kBegin + 64 * kMiB);
  EXPECT_EQ(answer.code, GRADCUBE_EAGAIN);
  EXPECT_EQ(answer.request, kBegin);
  EXPECT_EQ(resident_bytes(file), before);
  EXPECT_EQ(quota_.used(getuid()), 0u) << "it is not charged either";
  // One page is missing.
  trainer_->touch(kBegin, kBegin + 60 * kMiB);
  trainer_->touch(kBegin + 60 * kMiB + 4096, kBegin + 64 * kMiB);
  EXPECT_EQ(report(*trainer_, kBegin + 64 * kMiB).code, GRADCUBE_EAGAIN);
  trainer_->touch(kBegin + 60 * kMiB, kBegin + 60 * kMiB + 4096);
  EXPECT_EQ(report(*trainer_, kBegin + 64 * kMiB).code, GRADCUBE_OK);
}

TEST_F(SessionMemory, IsRefusedBeyondTheQuotaOfItsUserWithAReason) {
  join();
  trainer_->touch(kBegin, kBegin + 50 * kMiB);
  other_->touch(kBegin, kBegin + 50 * kMiB);
  EXPECT_EQ(report(*trainer_, kBegin + 50 * kMiB).code, GRADCUBE_OK);
  const shared::Notice answer = report(*other_, kBegin + 50 * kMiB);
  EXPECT_EQ(answer.code, GRADCUBE_ENOMEM);
  EXPECT_EQ(answer.request, kBegin);
  const std::string text = answer.text;
  for (const std::string& word :
       {"user " + std::to_string(getuid()), std::string("may use 83.88608M"),
        std::string("use 52.4288M"), std::string("--trainer-memory")}) {
    EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
  }
  // What it is going to need counts before it is touched.
  EXPECT_EQ(report(*other_, kBegin, kBegin + 31 * kMiB).code, GRADCUBE_ENOMEM);
  EXPECT_EQ(report(*other_, kBegin, kBegin + 30 * kMiB).code, GRADCUBE_OK);
  EXPECT_EQ(report(*other_, kBegin + 30 * kMiB).code, GRADCUBE_OK);
  // When it has left, what it had sent may still be received. When its job ends, others may use
  // what it used.
  trainer_->say_goodbye();
  run(10, [] { return false; });
  EXPECT_EQ(quota_.used(getuid()), 80 * kMiB);
  other_->say_goodbye();
  run(500, [this] { return quota_.used(getuid()) == 0; });
  EXPECT_EQ(quota_.used(getuid()), 0u);
}

TEST_F(SessionMemory, IsLookedAtInSlicesBetweenWhichOthersAreServed) {
  join();
  constexpr std::uint64_t kSlices = 2;
  constexpr std::uint64_t kEnd = kBegin + kSlices * RegionGrowth::kSlice + kMiB;
  trainer_->touch(kBegin, kEnd);
  ASSERT_TRUE(trainer_->report_memory(kEnd));
  const unsigned rounds = run(100, [this] { return heap_of(0) != 0; });
  EXPECT_EQ(heap_of(0), kEnd - kBegin);
  EXPECT_GE(rounds, kSlices + 1);
}

TEST_F(SessionMemory, IsConfirmedAlsoToATrainerThatHasLeftItsSocketFullOfNotices) {
  join();
  trainer_->touch(kBegin, kBegin + 2 * kMiB);
  constexpr std::uint32_t kMany = 1000;  // more than a socket has room for
  for (std::uint32_t number = 1; number <= kMany; ++number) {
    server_.notify({0, 1}, make_failure(number, GRADCUBE_EPEER, "failed"));
  }
  ASSERT_TRUE(trainer_->report_memory(kBegin + kMiB));
  run(20, [this] { return heap_of(0) == kMiB; });
  ASSERT_EQ(heap_of(0), kMiB);
  run(20);
  std::uint32_t told = 0;
  while (!trainer_->told().empty()) ++told;
  EXPECT_LT(told, kMany);
  std::optional<shared::Notice> answer;
  run(100, [&] { return (answer = trainer_->confirmation()).has_value(); });
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->request, kBegin + kMiB);
  // It is answered once, and may ask again.
  EXPECT_EQ(report(*trainer_, kBegin + 2 * kMiB).request, kBegin + 2 * kMiB);
}

// It waits for each answer before it asks again, so no more are kept.
TEST_F(SessionMemory, OfATrainerThatReadsNoAnswersIsNotAnsweredWithoutEnd) {
  join();
  constexpr std::uint32_t kMany = 1000;
  for (std::uint32_t number = 1; number <= kMany; ++number) {
    server_.notify({0, 1}, make_failure(number, GRADCUBE_EPEER, "failed"));
  }
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(trainer_->report_memory(kBegin));
    run(100, [this] { return !trainer_->has_unread(); });
  }
  while (!trainer_->told().empty()) continue;
  std::size_t answers = 0;
  run(100, [&] {
    while (trainer_->confirmation().has_value()) ++answers;
    return false;
  });
  EXPECT_EQ(answers, SessionServer::kMostUntold);
  EXPECT_EQ(trainers(), 2U);
}

TEST_F(SessionMemory, CostsASessionThatReportsWhatNoTrainerDoes) {
  for (const std::uint64_t end : {kBegin + 1, kBegin - 4096, std::uint64_t{0}, UINT64_MAX - 4095,
                                  kBegin + Trainer::kHeap + 4096}) {
    trainer_ = std::make_unique<Trainer>(paths_[0]);
    other_ = std::make_unique<Trainer>(paths_[1]);
    join();
    ASSERT_TRUE(trainer_->report_memory(end));
    std::string text;
    run(100, [&] { return !(text = trainer_->told()).empty(); });
    EXPECT_NE(text.find("does not understand"), std::string::npos) << end << ": " << text;
    other_.reset();
    run(500, [this] { return nodes_.idle(); });
  }
}

TEST_F(SessionMemory, CostsASessionThatReportsAgainBeforeItIsAnswered) {
  join();
  trainer_->touch(kBegin, kBegin + kMiB);
  ASSERT_TRUE(trainer_->report_memory(kBegin + kMiB));
  ASSERT_TRUE(trainer_->report_memory(kBegin + kMiB));
  std::string text;
  run(100, [&] { return !(text = trainer_->told()).empty(); });
  EXPECT_NE(text.find("does not understand"), std::string::npos) << text;
}

TEST_F(SessionMemory, IsForgottenWhenItsTrainerGoesWhileItIsLookedAt) {
  join();
  trainer_->touch(kBegin, kBegin + 70 * kMiB);
  ASSERT_TRUE(trainer_->report_memory(kBegin + 70 * kMiB));
  run(1);
  trainer_.reset();
  other_.reset();
  run(500, [this] { return nodes_.idle() && quota_.users().empty(); });
  EXPECT_TRUE(nodes_.idle());
  EXPECT_TRUE(quota_.users().empty());
}

TEST_F(SessionMemory, ThatFailsEndsItsJobWithAnErrorThatNamesServerAndTrainer) {
  GuardedMemory::install_handler();
  join();
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  std::uint8_t* base = nodes_.at(0).region_base({0, 1});
  ASSERT_EQ(
      mmap(base, shared::kHeapOffset, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0),
      base);
  close(empty);
  std::string text;
  run(500, [&] { return !(text = trainer_->told()).empty(); });
  EXPECT_NE(text.find("SIGBUS"), std::string::npos) << text;
  run(500, [&] { return !(text = other_->told()).empty(); });
  for (const std::string& word :
       {std::string("SIGBUS"), std::string("server [0]"), "pid " + std::to_string(getpid())}) {
    EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
  }
  run(10);
  EXPECT_FALSE(GuardedMemory::pending()) << "other jobs go on";
}

}  // namespace
}  // namespace gradcube::dataplane
