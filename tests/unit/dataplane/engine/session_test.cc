// A session against trainers that keep to shared_layout.h and trainers that do not.

#include "dataplane/engine/session/session.h"

#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tests/unit/dataplane/engine/submission_entry.h"
#include "tests/unit/dataplane/engine/whole_region.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kHeap = 1 << 20;

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    trainer_end_ = ends[1];
    session_ = std::make_unique<Session>(whole_region(kHeap), ends[0], SessionShape{3, {2, 1}},
                                         std::vector<Doorbell*>{});
  }
  ~SessionTest() override { close(trainer_end_); }

  shared::RegionHeader& header() { return session_->region().header(); }
  shared::Submission& entry(std::uint64_t index) {
    return submission_entry(session_->region(), index);
  }
  // The trainer's next submission, a good one but for `change`.
  void submit(const std::function<void(shared::Submission&)>& change = {}) {
    shared::Submission& submission = entry(submitted_);
    submission = {};
    submission.request = ++submitted_;
    submission.offset = shared::kHeapOffset;
    submission.count = 16;
    if (change) change(submission);
    header().submission_tail.store(submitted_);
  }
  void expect_violation(const std::string& reason) {
    ASSERT_EQ(session_->take(), Session::Take::violation);
    EXPECT_NE(std::string(session_->violation()).find(reason), std::string::npos)
        << session_->violation();
    EXPECT_EQ(session_->take(), Session::Take::violation) << "and it stays one";
  }
  bool rung() {
    pollfd bell{trainer_end_, POLLIN, 0};
    return poll(&bell, 1, 0) == 1;
  }

  std::unique_ptr<Session> session_;
  int trainer_end_ = -1;
  std::uint64_t submitted_ = 0;
};

TEST_F(SessionTest, PublishesWhatTheTrainerSubmitsInOrder) {
  EXPECT_EQ(session_->take(), Session::Take::none);
  submit();
  submit([](shared::Submission& s) {
    s.offset += 4096;
    s.count = 3;
    s.dtype = 1;
    s.collective.op = 2;
  });
  EXPECT_TRUE(session_->has_submission());
  EXPECT_EQ(session_->take(), Session::Take::taken);
  EXPECT_EQ(session_->take(), Session::Take::taken);
  EXPECT_EQ(session_->take(), Session::Take::none);
  EXPECT_FALSE(session_->has_submission());
  EXPECT_EQ(session_->published(), 2u);
  EXPECT_EQ(header().submission_head.load(), 2u);
  const CollectiveRequest& request = session_->request(0, 2);
  EXPECT_EQ(request.number, 2u);
  EXPECT_EQ(request.buffer, session_->region().base() + shared::kHeapOffset + 4096);
  EXPECT_EQ(request.bytes, 24u);
  EXPECT_EQ(request.dtype, aggregation::DataType::float64);
  EXPECT_EQ(request.operation, aggregation::Operation::min);
}

TEST_F(SessionTest, WakesThePollersThatCannotBeginMoreBeforeTheFirstHaveEnded) {
  Doorbell poller;
  session_ = std::make_unique<Session>(whole_region(kHeap), fcntl(trainer_end_, F_DUPFD, 0),
                                       SessionShape{3, {1}}, std::vector{&poller});
  const auto rings = [&](std::uint64_t ends) {
    poller.prepare_wait();
    session_->complete_through(0, ends, 0);
    return poller.finish_wait();
  };
  for (std::uint64_t i = 0; i <= Session::kMostBegun + 1; ++i) submit();
  while (session_->take() == Session::Take::taken) {
  }
  EXPECT_TRUE(rings(1));
  EXPECT_TRUE(rings(2));
  EXPECT_FALSE(rings(3)) << "all that are published could begin";
}

TEST_F(SessionTest, CompletesInOrderAndRingsOnlyForATrainerThatSleeps) {
  submit();
  submit();
  submit();
  while (session_->take() == Session::Take::taken) {
  }
  session_->report(0, 0, 2);
  EXPECT_EQ(session_->finished_by_all(0), 0u) << "the other thread has not finished anything";
  session_->report(0, 1, 1);
  EXPECT_EQ(session_->finished_by_all(0), 1u);
  session_->complete_through(0, 1, 0);
  EXPECT_FALSE(rung());
  header().trainer_asleep.store(1);
  session_->complete_through(0, 3, -5);
  EXPECT_TRUE(rung());
  EXPECT_EQ(session_->completed(0), 3u);
  EXPECT_EQ(header().completion_tail.load(), 3u);
  EXPECT_EQ(session_->region().completion(0).code, 0);
  for (std::uint64_t i = 1; i < 3; ++i) {
    EXPECT_EQ(session_->region().completion(i).request, i + 1);
    EXPECT_EQ(session_->region().completion(i).code, -5);
  }
  session_->complete_through(0, 2, -1);
  EXPECT_EQ(header().completion_tail.load(), 3u) << "what has ended does not end again";
}

TEST(SessionBells, WakeTheLeadersPollerWhenAThreadHasFinishedSomething) {
  Doorbell leader;
  Session session(std::make_unique<SessionRegion>(kHeap), -1, SessionShape{2, {2}}, {}, &leader);
  session.report(0, 1, 1);
  leader.prepare_wait();
  EXPECT_FALSE(leader.finish_wait()) << "it was awake";
  leader.prepare_wait();
  session.report(0, 1, 2);
  EXPECT_TRUE(leader.finish_wait());
}

TEST_F(SessionTest, NumbersEachLaneByItselfAndReturnsTheTrainersNames) {
  submit([](shared::Submission& s) { s.request = 70; });
  submit([](shared::Submission& s) {
    s.request = 50;
    s.collective.lane = 1;
  });
  submit([](shared::Submission& s) { s.request = 60; });
  while (session_->take() == Session::Take::taken) {
  }
  EXPECT_EQ(session_->published(0), 2u);
  EXPECT_EQ(session_->published(1), 1u);
  EXPECT_EQ(session_->request(1, 1).request, 50u);
  session_->complete_through(1, 1, 0);
  session_->complete_through(0, 2, -5, 4);
  EXPECT_FALSE(session_->anything_in_flight());
  const std::vector<std::pair<std::uint64_t, std::uint32_t>> expected{{50, 0}, {70, 4}, {60, 4}};
  ASSERT_EQ(header().completion_tail.load(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(session_->region().completion(i).request, expected[i].first);
    EXPECT_EQ(session_->region().completion(i).notice, expected[i].second);
  }
}

TEST_F(SessionTest, TakesNoMoreThanItHasRoomToComplete) {
  for (unsigned i = 0; i < shared::kRingEntries; ++i) submit();
  while (session_->take() == Session::Take::taken) {
  }
  ASSERT_EQ(session_->published(), shared::kRingEntries);
  session_->complete_through(0, shared::kRingEntries, 0);
  submit();
  EXPECT_EQ(session_->take(), Session::Take::none) << "the trainer has not read its completions";
  header().completion_head.store(1);
  EXPECT_EQ(session_->take(), Session::Take::taken);
}

TEST_F(SessionTest, RefusesCountersOutOfRange) {
  header().submission_tail.store(shared::kSubmissionEntries + 1);
  expect_violation("submission ring's tail");
}

TEST_F(SessionTest, RefusesACompletionHeadBeyondWhatHasCompleted) {
  submit();
  header().completion_head.store(1);
  expect_violation("completion ring's head");
}

struct Nonsense {
  const char* name;
  std::function<void(shared::Submission&)> change;
  const char* reason;
};

class HostileSubmission : public SessionTest, public testing::WithParamInterface<Nonsense> {};

TEST_P(HostileSubmission, IsAViolationThatSaysWhy) {
  submit();
  ASSERT_EQ(session_->take(), Session::Take::taken);
  submit(GetParam().change);
  expect_violation(GetParam().reason);
  EXPECT_EQ(session_->published(), 1u);
}

constexpr std::uint64_t kEnd = shared::kHeapOffset + kHeap;
INSTANTIATE_TEST_SUITE_P(
    Fields, HostileSubmission,
    testing::Values(
        Nonsense{"Lane", [](auto& s) { s.collective.lane = 2; }, "lane"},
        Nonsense{"Type", [](auto& s) { s.type = 4; }, "unknown type"},
        Nonsense{"Kind", [](auto& s) { s.collective.kind = 6; }, "kind of collective"},
        Nonsense{"Dtype",
                 [](auto& s) { s.dtype = static_cast<std::uint8_t>(aggregation::DataType::sum64); },
                 "element type"},
        Nonsense{"SumOfBytes",
                 [](auto& s) { s.dtype = static_cast<std::uint8_t>(aggregation::DataType::bytes); },
                 "does not fit its element type"},
        Nonsense{"AverageOfInt8",
                 [](auto& s) {
                   s.dtype = static_cast<std::uint8_t>(aggregation::DataType::int8);
                   s.collective.op = static_cast<std::uint8_t>(aggregation::Operation::average);
                 },
                 "does not fit its element type"},
        Nonsense{"RootOfAllReduce", [](auto& s) { s.collective.root = 1; }, "root"},
        Nonsense{"RootBeyondTheRanks",
                 [](auto& s) {
                   s.collective.kind = static_cast<std::uint8_t>(shared::CollectiveKind::broadcast);
                   s.collective.root = 3;
                 },
                 "root"},
        Nonsense{"GatheredOfAllReduce",
                 [](auto& s) { s.collective.gathered = shared::Gathered::digests; }, "gathers"},
        Nonsense{"GatheredUnknown",
                 [](auto& s) {
                   s.collective.kind =
                       static_cast<std::uint8_t>(shared::CollectiveKind::all_gather);
                   s.collective.gathered = shared::Gathered{shared::kGatheredThings};
                 },
                 "gathers"},
        Nonsense{"BarrierWithABuffer",
                 [](auto& s) {
                   s.collective.kind = static_cast<std::uint8_t>(shared::CollectiveKind::barrier);
                 },
                 "barrier"},
        Nonsense{"ChunksBeyond",
                 [](auto& s) {
                   s.collective.kind =
                       static_cast<std::uint8_t>(shared::CollectiveKind::all_gather);
                   s.count = kHeap / 4 / 3 + 1;
                 },
                 "outside its heap"},
        Nonsense{"Op", [](auto& s) { s.collective.op = 255; }, "operation"},
        Nonsense{"OffsetZero", [](auto& s) { s.offset = 0; }, "outside its heap"},
        Nonsense{"OffsetInRings", [](auto& s) { s.offset = 4096; }, "outside its heap"},
        Nonsense{"OffsetUnaligned", [](auto& s) { s.offset += 4; }, "outside its heap"},
        Nonsense{"OffsetBeyond", [](auto& s) { s.offset = kEnd + 64; }, "outside its heap"},
        Nonsense{"OffsetHuge", [](auto& s) { s.offset = ~std::uint64_t{63}; }, "outside its heap"},
        Nonsense{"CountBeyond", [](auto& s) { s.count = kHeap / 4 + 1; }, "outside its heap"},
        Nonsense{"EndBeyond",
                 [](auto& s) {
                   s.offset = kEnd - 64;
                   s.count = 17;
                 },
                 "outside its heap"},
        Nonsense{"CountOverflows", [](auto& s) { s.count = (std::uint64_t{1} << 62) + 1; },
                 "outside its heap"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(SessionTest, TakesTheWholeHeapAndAnEmptyBufferAtItsEnd) {
  submit([](shared::Submission& s) { s.count = kHeap / 4; });
  submit([](shared::Submission& s) {
    s.offset = kEnd;
    s.count = 0;
  });
  EXPECT_EQ(session_->take(), Session::Take::taken);
  EXPECT_EQ(session_->take(), Session::Take::taken);
}

TEST_F(SessionTest, RefusesWhatLiesBeyondTheConfirmedPart) {
  const auto region = std::make_shared<SessionRegion>(kHeap);
  constexpr std::uint64_t kPart = 8192;
  region->confirm(shared::kHeapOffset + kPart);
  const auto take = [&](std::uint64_t offset, std::uint64_t count) {
    Session session(region, -1, {2, {1}}, {});
    shared::Submission& entry = submission_entry(*region, 0);
    entry = {};
    entry.offset = offset;
    entry.count = count;
    region->header().submission_tail.store(1);
    const Session::Take result = session.take();
    if (result == Session::Take::violation) {
      EXPECT_NE(std::string(session.violation()).find("daemon has confirmed"), std::string::npos);
    }
    return result;
  };
  EXPECT_EQ(take(shared::kHeapOffset, kPart / 4), Session::Take::taken);
  EXPECT_EQ(take(shared::kHeapOffset, kPart / 4 + 1), Session::Take::violation);
  EXPECT_EQ(take(shared::kHeapOffset + kPart - 64, 16), Session::Take::taken);
  EXPECT_EQ(take(shared::kHeapOffset + kPart - 64, 17), Session::Take::violation);
  EXPECT_EQ(take(shared::kHeapOffset + kPart, 1), Session::Take::violation);
  EXPECT_EQ(take(shared::kHeapOffset + kPart, 0), Session::Take::taken);
  EXPECT_EQ(take(shared::kHeapOffset + kPart + 64, 0), Session::Take::violation);
  region->confirm(region->bytes());
  EXPECT_EQ(take(shared::kHeapOffset, kHeap / 4), Session::Take::taken);
}

TEST_F(SessionTest, UsesWhatItHasCheckedWhileTheTrainerWritesOn) {
  constexpr std::uint64_t kGood = 16;
  constexpr std::uint64_t kBad = UINT64_MAX / 4;  // elements, far outside the heap
  unsigned taken = 0;
  unsigned refused = 0;
  for (unsigned round = 0; round < 500; ++round) {
    Session session(whole_region(kHeap), -1, {2, {1}}, {});
    shared::Submission& victim = submission_entry(session.region(), 0);
    victim.request = 1;
    victim.offset = shared::kHeapOffset;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      const std::atomic_ref<std::uint64_t> count(victim.count);
      for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        count.store(i % 2 == 0 ? kGood : kBad, std::memory_order_relaxed);
      }
    });
    session.region().header().submission_tail.store(1);
    const Session::Take result = session.take();
    stop.store(true);
    writer.join();
    if (result == Session::Take::taken) {
      ++taken;
      ASSERT_LE(session.request(0, 1).count, kGood);
      ASSERT_EQ(session.request(0, 1).bytes, 4 * session.request(0, 1).count);
    } else {
      ++refused;
      ASSERT_EQ(result, Session::Take::violation);
    }
  }
  EXPECT_EQ(taken + refused, 500u);
}

}  // namespace
}  // namespace gradcube::dataplane
