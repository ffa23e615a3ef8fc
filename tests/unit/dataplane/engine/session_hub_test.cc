// A session against trainers that push to a hub: good pushes, and every wrong field.

#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/dataplane/engine/engine_fixture.h"
#include "tests/unit/dataplane/engine/small_hub.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kPushHeap = 1 << 16;

class SessionHub : public testing::Test {
 protected:
  void submit(const shared::Submission& entry) { submit(session_, submitted_, entry); }
  static void submit(TestSession& session, std::uint64_t& submitted,
                     const shared::Submission& entry) {
    submission_entry(session->region(), submitted++) = entry;
    session->region().header().submission_tail.store(submitted);
  }
  void take(const shared::Submission& entry) {
    submit(entry);
    ASSERT_EQ(session_->take(), Session::Take::taken) << session_->violation();
  }
  // The requests that have ended, with their codes and notices.
  struct End {
    std::uint64_t request;
    std::int32_t code;
    std::uint32_t notice;
    bool operator==(const End&) const = default;
  };
  std::vector<End> ends() {
    const SessionRegion& region = session_->region();
    std::vector<End> ends;
    for (; ended_ < region.header().completion_tail.load(); ++ended_) {
      const shared::Completion& completion = region.completion(ended_);
      ends.push_back({completion.request, completion.code, completion.notice});
    }
    return ends;
  }
  // That a session with a hub and this push in flight takes the change of it for no push.
  static void expect_violation(const std::string& reason,
                               const std::function<void(shared::Submission&)>& change,
                               std::uint32_t in_flight = 1,
                               const std::shared_ptr<ServerHub>& hub = small_hub()) {
    TestSession session(1, kPushHeap);
    session->set_hub(*hub);
    std::uint64_t submitted = 0;
    submit(session, submitted, small_push(1, in_flight));
    ASSERT_EQ(session->take(), Session::Take::taken);
    shared::Submission entry = small_push(2);
    change(entry);
    submit(session, submitted, entry);
    EXPECT_EQ(session->take(), Session::Take::violation) << reason;
    EXPECT_THAT(session->violation(), testing::HasSubstr(reason));
    EXPECT_EQ(session->take(), Session::Take::violation) << "and it stays one";
    EXPECT_EQ(session->pushes_in_flight(), 1U) << reason;
  }

  std::shared_ptr<ServerHub> hub_ = small_hub();
  TestSession session_{1, kPushHeap};
  std::uint64_t submitted_ = 0;
  std::uint64_t ended_ = 0;
};

TEST_F(SessionHub, GetsWhatIsPushed) {
  session_->set_hub(*hub_);
  take(small_push(7, 1, shared::PushKind::weights));
  shared::Submission other = small_push(8, 0);
  other.offset += 4096;
  other.push.rate = 0.125;
  take(other);
  HubBoard& board = hub_->board();
  EXPECT_EQ(board.next_pushed(0), 1U);
  EXPECT_EQ(board.next_pushed(0), 0U);
  EXPECT_EQ(board.pushed(1).kind, PushKind::weights);
  EXPECT_EQ(board.pushed(1).buffers[0], session_.base() + shared::kHeapOffset);
  EXPECT_EQ(board.pushed(0).kind, PushKind::gradients);
  EXPECT_EQ(board.pushed(0).learning_rate, 0.125);
  EXPECT_EQ(board.pushed(0).buffers[0], session_.base() + shared::kHeapOffset + 4096);
  EXPECT_EQ(session_->region().header().submission_head.load(), 2U);
  EXPECT_EQ(session_->published(), 0U) << "a push is no collective";
}

TEST_F(SessionHub, TakesTheOptimizersLearningRateWhereNoneIsGiven) {
  session_->set_hub(*hub_);
  take(small_push(1));
  EXPECT_EQ(hub_->board().pushed(0).learning_rate, kHubRate);
}

TEST_F(SessionHub, TellsOfTheEndOfEachPushOnce) {
  session_->set_hub(*hub_);
  EXPECT_FALSE(session_->anything_in_flight());
  take(small_push(7, 0));
  take(small_push(8, 1));
  EXPECT_TRUE(session_->anything_in_flight());
  EXPECT_EQ(session_->end_pushes().rounds, 0U);
  hub_->board().end(0, 1, 0);
  EXPECT_EQ(session_->end_pushes().rounds, 1U);
  EXPECT_EQ(ends(), (std::vector<End>{{8, 0, 0}}));
  EXPECT_TRUE(session_->anything_in_flight());
  hub_->board().end(0, 0, 0);
  EXPECT_EQ(session_->end_pushes().rounds, 1U);
  EXPECT_EQ(ends(), (std::vector<End>{{7, 0, 0}}));
  EXPECT_FALSE(session_->anything_in_flight());
  EXPECT_EQ(session_->end_pushes().rounds, 0U);
  take(small_push(9, 1));  // again
  EXPECT_EQ(ends(), std::vector<End>{});
}

TEST_F(SessionHub, RefusesWrongFields) {
  using Entry = shared::Submission;
  expect_violation("a key that its hub has not", [](Entry& e) { e.push.key = 2; });
  expect_violation("a key that its hub has not", [](Entry& e) { e.push.key = UINT32_MAX; });
  expect_violation("not as its key", [](Entry& e) { ++e.count; });
  expect_violation("not as its key", [](Entry& e) { e.count = 0; });
  expect_violation("not as its key", [](Entry& e) { e.count = UINT64_MAX; });
  expect_violation("not as its key", [](Entry& e) { ++e.dtype; });
  expect_violation("not as its key", [](Entry& e) { e.dtype = 255; });
  expect_violation("unknown kind", [](Entry& e) { e.push.kind = shared::kPushKinds; });
  expect_violation("fields that pushes have not", [](Entry& e) { e.push.steps = 1; });
  expect_violation("fields that pushes have not", [](Entry& e) { e.push.digest = 1; });
  expect_violation("fields that pushes have not", [](Entry& e) {
    e.push.kind = static_cast<std::uint8_t>(shared::PushKind::weights);
  });
  expect_violation("outside its heap", [](Entry& e) { e.offset = 0; });
  expect_violation("outside its heap", [](Entry& e) { ++e.offset; });
  expect_violation("outside its heap", [](Entry& e) { e.offset += kPushHeap - 192; });
  expect_violation("outside its heap", [](Entry& e) { e.offset = UINT64_MAX - 63; });
  expect_violation(
      "last push has not ended", [](Entry&) {}, 0);
}

TEST_F(SessionHub, RefusesLearningRatesThatAreNone) {
  for (const double rate :
       {std::nan(""), -std::nan(""), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), -0.5, -1.0000001,
        -std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::lowest()}) {
    expect_violation("without a valid learning rate",
                     [&](shared::Submission& entry) { entry.push.rate = rate; });
  }
}

// A push to a hub that accumulates, by which what was accumulated is applied.
shared::Submission applied(std::uint64_t request, float scale) {
  shared::Submission entry = small_push(request, 0, shared::PushKind::applied);
  entry.push.rate = shared::kOwnRate;
  entry.push.digest = std::bit_cast<std::uint32_t>(scale);
  return entry;
}

TEST_F(SessionHub, TellsTheSquaresOfWhatIsAccumulatedAndTakesWhatIsApplied) {
  const std::shared_ptr<ServerHub> hub = small_hub(1, 1, 0, {}, true);
  session_->set_hub(*hub);
  take(small_push(7, 0, shared::PushKind::accumulated));
  hub->board().end(0, 0, 2.25);
  EXPECT_EQ(session_->end_pushes().rounds, 1U);
  EXPECT_EQ(std::bit_cast<double>(session_->region().completion(0).bytes), 2.25);
  EXPECT_EQ(hub->board().steps(0), 0U);
  std::uint64_t steps = 0;
  for (const float scale : {0.5F, 0.0F}) {
    shared::Submission entry = applied(8, scale);
    take(entry);
    EXPECT_EQ(hub->board().pushed(0).learning_rate, kHubRate);
    EXPECT_EQ(hub->board().pushed(0).digest, std::bit_cast<std::uint32_t>(scale));
    hub->board().end(0, 0, 2.25);
    EXPECT_EQ(session_->end_pushes().rounds, 1U);
    EXPECT_EQ(session_->region().completion(1 + steps).bytes, 0U);
    EXPECT_EQ(hub->board().steps(0), ++steps > 1 ? 1U : steps) << "the scale 0 takes no step";
  }
}

TEST_F(SessionHub, RefusesWhatItDoesNotAccumulateAndScalesThatAreNone) {
  const auto refuse = [](const std::string& reason, const shared::Submission& wrong,
                         bool accumulates) {
    expect_violation(
        reason, [&](shared::Submission& entry) { entry = wrong; }, 1,
        small_hub(1, 1, 0, {}, accumulates));
  };
  refuse("does not accumulate", small_push(2, 0, shared::PushKind::accumulated), false);
  refuse("does not accumulate", applied(2, 1), false);
  for (const float scale : {std::nanf(""), -1.0F, std::numeric_limits<float>::infinity()}) {
    refuse("without a valid scale", applied(2, scale), true);
  }
  shared::Submission entry = applied(2, 1);
  entry.push.rate = -0.5;
  refuse("without a valid learning rate", entry, true);
  entry = small_push(2, 0, shared::PushKind::accumulated);
  entry.push.rate = 0.5;
  refuse("fields that pushes have not", entry, true);
}

constexpr bcube::ServerId kAggregator = 1;

TEST_F(SessionHub, TakesPlanesOfKeysThatAnAggregatorHas) {
  const std::shared_ptr<ServerHub> hub = small_hub(1, 1, 0, {kAggregator});
  session_->set_hub(*hub);
  take(small_push(7, 0, shared::PushKind::saved));
  shared::Submission loaded = small_push(8, 1, shared::PushKind::loaded);
  loaded.push.steps = shared::kMostLoadedSteps + 1;
  take(loaded);
  EXPECT_EQ(hub->board().pushed(0).kind, PushKind::saved);
  EXPECT_EQ(hub->board().pushed(1).kind, PushKind::loaded);
  EXPECT_EQ(hub->board().pushed(1).steps, shared::kMostLoadedSteps + 1);
}

TEST_F(SessionHub, RefusesPlanesThatThereAreNot) {
  const auto expect_refused = [](const std::string& reason, shared::PushKind kind,
                                 const std::vector<bcube::ServerId>& aggregators, unsigned plane,
                                 std::uint64_t steps) {
    const auto change = [&](shared::Submission& entry) {
      entry.push.kind = static_cast<std::uint8_t>(kind);
      entry.push.plane = static_cast<std::uint8_t>(plane);
      entry.push.steps = steps;
      entry.push.rate = 0;
    };
    expect_violation(reason, change, 1, small_hub(1, 1, 0, aggregators));
  };
  using Kind = shared::PushKind;
  expect_refused("does not save or restore so", Kind::saved, {}, 0, 0);
  expect_refused("does not save or restore so", Kind::loaded, {}, 0, 0);
  expect_refused("does not save or restore so", Kind::restored, {kAggregator}, 0, 0);
  expect_refused("fields that pushes have not", Kind::weights, {kAggregator}, 1, 0);
  // Of sgd and float32 there are the weights alone.
  expect_refused("fields that pushes have not", Kind::saved, {kAggregator}, 1, 0);
  expect_refused("more steps", Kind::saved, {kAggregator}, 0, 1);
  expect_refused("more steps", Kind::loaded, {kAggregator}, 0, shared::kMostLoadedSteps + 2);
}

TEST_F(SessionHub, RefusesMemoryThatIsNotConfirmed) {
  const auto region = std::make_shared<SessionRegion>(kPushHeap);
  region->confirm(shared::kHeapOffset + 4096);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  Session session(region, ends[0], SessionShape{2, {1}}, {});
  session.set_hub(*hub_);
  shared::Submission entry = small_push(1);
  entry.offset += 4096 - 192;
  submission_entry(*region, 0) = entry;
  region->header().submission_tail.store(1);
  EXPECT_EQ(session.take(), Session::Take::violation);
  EXPECT_THAT(session.violation(), testing::HasSubstr("beyond the memory"));
  close(ends[1]);
}

TEST_F(SessionHub, IsNotThereUntilItIsMade) {
  submit(small_push(1));
  EXPECT_EQ(session_->take(), Session::Take::violation);
  EXPECT_THAT(session_->violation(), testing::HasSubstr("a hub that there is not"));
}

TEST_F(SessionHub, IsNotAnotherThanThereIs) {
  for (const std::uint32_t number : {0U, 2U, UINT32_MAX}) {
    expect_violation("a hub that there is not",
                     [&](shared::Submission& entry) { entry.push.hub = number; });
  }
}

TEST_F(SessionHub, EndsPushesWithItsCodeWhenItEndsAndFromThenOn) {
  session_->set_hub(*hub_);
  take(small_push(7, 0));
  take(small_push(8, 1));
  session_->end_hub(GRADCUBE_EPEER, 5);
  EXPECT_EQ(session_->hub(), nullptr);
  EXPECT_THAT(ends(),
              testing::UnorderedElementsAre(End{7, GRADCUBE_EPEER, 5}, End{8, GRADCUBE_EPEER, 5}));
  EXPECT_FALSE(session_->anything_in_flight());
  take(small_push(9, 0));
  EXPECT_EQ(ends(), (std::vector<End>{{9, GRADCUBE_EPEER, 5}}));
  session_->end_hub(GRADCUBE_EABORTED, 6);  // there is none any more
  take(small_push(10, 0));
  EXPECT_EQ(ends(), (std::vector<End>{{10, GRADCUBE_EPEER, 5}}));
}

TEST_F(SessionHub, ThatIsOverIsNotTheNextOne) {
  session_->set_hub(*hub_);
  session_->end_hub(GRADCUBE_EINVAL);
  const std::shared_ptr<ServerHub> next = small_hub(2);
  session_->set_hub(*next);
  take(small_push(7));
  EXPECT_EQ(ends(), (std::vector<End>{{7, GRADCUBE_EINVAL, 0}}));
  EXPECT_EQ(session_->pushes_in_flight(), 0U);
  shared::Submission push = small_push(8);
  push.push.hub = 2;
  take(push);
  EXPECT_EQ(ends(), std::vector<End>{});
  EXPECT_EQ(session_->pushes_in_flight(), 1U);
}

// Other engines look whether anything is in flight at any moment.
TEST_F(SessionHub, MayGoWhileAnotherThreadLooksForPushes) {
  std::atomic<bool> is_over{false};
  std::jthread other([&] {
    while (!is_over) EXPECT_FALSE(session_->anything_in_flight());
  });
  for (std::uint32_t number = 1; number <= 20; ++number) {
    hub_ = small_hub(number);
    for (int turn = 0; turn < 50000; ++turn) {
      session_->set_hub(*hub_);
      session_->end_hub(GRADCUBE_EINVAL);
    }
    hub_.reset();
  }
  is_over = true;
}

TEST_F(SessionHub, RingsForATrainerThatSleeps) {
  session_->set_hub(*hub_);
  take(small_push(7));
  session_->region().header().trainer_asleep.store(1);
  session_->end_hub(GRADCUBE_EINVAL);
  EXPECT_TRUE(session_.is_rung());
}

}  // namespace
}  // namespace gradcube::dataplane
