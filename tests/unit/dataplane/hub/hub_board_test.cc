#include "dataplane/hub/hub_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// A trainer's buffer, by trainer and key.
std::uint8_t memory[16][64];

HubBoard::Push gradients(std::uint64_t request, unsigned local = 0, std::uint32_t key = 0,
                         double rate = 0.5) {
  return {request, PushKind::gradients, rate, 0, &memory[local][key], 0, {}};
}

HubBoard::Push weights(std::uint64_t request, std::uint64_t digest = 0) {
  return {request, PushKind::weights, 0, digest, memory[0], 0, {}};
}

std::vector<std::uint32_t> all_pushed(HubBoard& board, std::size_t executor) {
  std::vector<std::uint32_t> keys;
  while (const auto key = board.next_pushed(executor)) keys.push_back(*key);
  return keys;
}

bool is_sound() { return true; }

using Ends = std::vector<std::pair<unsigned, std::uint64_t>>;

Ends ends_of(HubBoard& board) {
  Ends ends;
  board.take_ended(is_sound, [&](unsigned local, std::uint64_t request, double) {
    ends.emplace_back(local, request);
  });
  return ends;
}

TEST(HubBoard, KnowsATrainerThatAKeyWaitsFor) {
  HubBoard board(3, 3, 1);
  EXPECT_EQ(board.latest(2), std::nullopt) << "nobody has pushed it";
  board.push(2, 1, gradients(11, 1, 2));
  EXPECT_EQ(board.latest(2), 0U);
  board.push(2, 0, gradients(12, 0, 2));
  EXPECT_EQ(board.latest(2), 2U);
  board.push(2, 2, gradients(13, 2, 2));
  EXPECT_EQ(board.latest(2), std::nullopt) << "all have";
}

TEST(HubBoard, OpensARoundWithTheLastTrainersPush) {
  HubBoard board(4, 3, 2);
  board.push(2, 1, gradients(11, 1, 2));
  board.push(2, 0, gradients(12, 0, 2));
  for (const std::size_t executor : {0U, 1U}) {
    EXPECT_FALSE(board.has_pushed(executor));
    EXPECT_EQ(board.next_pushed(executor), std::nullopt);
  }
  board.push(2, 2, gradients(13, 2, 2));
  for (const std::size_t executor : {0U, 1U}) {
    EXPECT_TRUE(board.has_pushed(executor));
    EXPECT_THAT(all_pushed(board, executor), ElementsAre(2U));
    EXPECT_FALSE(board.has_pushed(executor)) << "each is told once";
  }
  const HubPush& push = board.pushed(2);
  EXPECT_EQ(push.kind, PushKind::gradients);
  EXPECT_EQ(push.learning_rate, 0.5);
  for (const unsigned local : {0U, 1U, 2U}) EXPECT_EQ(push.buffers[local], &memory[local][2]);
}

TEST(HubBoard, TellsEachTrainerOfAnEndWhenAllExecutorsHaveToldIt) {
  HubBoard board(4, 2, 3);
  board.push(1, 0, gradients(100));
  board.push(1, 1, gradients(200));
  EXPECT_EQ(board.in_flight(), 2U);
  board.end(2, 1, 0);
  board.end(0, 1, 0);
  EXPECT_THAT(ends_of(board), IsEmpty());
  EXPECT_EQ(board.in_flight(), 2U);
  board.end(1, 1, 0);
  EXPECT_THAT(ends_of(board), UnorderedElementsAre(Pair(0U, 100U), Pair(1U, 200U)));
  EXPECT_EQ(board.in_flight(), 0U);
  EXPECT_THAT(ends_of(board), IsEmpty());
}

TEST(HubBoard, CountsTheRoundsThatHaveEnded) {
  HubBoard board(4, 2, 1);
  for (const std::uint32_t key : {3U, 0U}) {
    for (const unsigned local : {0U, 1U}) board.push(key, local, gradients(key));
    board.end(0, key, 0);
  }
  const auto ignore = [](unsigned, std::uint64_t, double) {};
  EXPECT_EQ(board.take_ended(is_sound, ignore), 2U);
  EXPECT_EQ(board.take_ended(is_sound, ignore), 0U);
}

TEST(HubBoard, KeepsEndsThatMayNotBeBelievedForLater) {
  HubBoard board(4, 1, 2);
  for (const std::uint32_t key : {1U, 2U, 3U}) {
    board.push(key, 0, gradients(10 + key));
    board.end(0, key, 0);
  }
  board.end(1, 1, 0);
  bool sound = true;
  Ends ends;
  const auto take = [&] {
    return board.take_ended([&] { return sound; },
                            [&](unsigned local, std::uint64_t request, double) {
                              ends.emplace_back(local, request);
                              // The other engine goes on meanwhile, and is not to be believed.
                              board.end(1, 2, 0);
                              sound = false;
                            });
  };
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(take(), 0U);
  EXPECT_THAT(ends, ElementsAre(Pair(0U, 11U)));
  EXPECT_EQ(board.in_flight(), 2U);
  board.end(1, 3, 0);
  EXPECT_EQ(board.take_ended([] { return false; }, [](unsigned, std::uint64_t, double) {}), 0U);
  EXPECT_THAT(ends_of(board), ElementsAre(Pair(0U, 12U), Pair(0U, 13U)));
}

TEST(HubBoard, TellsExecutorsOfKeysInTheOrderInWhichTheyWereComplete) {
  HubBoard board(4, 2, 2);
  board.push(0, 0, gradients(1));
  board.push(3, 0, gradients(2));
  board.push(3, 1, gradients(3));
  board.push(1, 1, gradients(4));
  board.push(1, 0, gradients(5));
  board.push(0, 1, gradients(6));
  EXPECT_THAT(all_pushed(board, 1), ElementsAre(3U, 1U, 0U));
  EXPECT_THAT(all_pushed(board, 0), ElementsAre(3U, 1U, 0U));
}

TEST(HubBoard, LetsATrainerPushAKeyAgainWhenItsLastPushHasEnded) {
  HubBoard board(2, 2, 1);
  for (std::uint64_t round = 0; round < 10; ++round) {
    EXPECT_TRUE(board.may_push(1, 0));
    board.push(1, 0, round == 0 ? weights(1) : gradients(round));
    EXPECT_FALSE(board.may_push(1, 0));
    EXPECT_TRUE(board.may_push(1, 1));
    EXPECT_TRUE(board.may_push(0, 0));
    board.push(1, 1, round == 0 ? weights(1) : gradients(round));
    EXPECT_THAT(all_pushed(board, 0), ElementsAre(1U));
    EXPECT_EQ(board.pushed(1).kind, round == 0 ? PushKind::weights : PushKind::gradients);
    EXPECT_FALSE(board.may_push(1, 1));
    board.end(0, 1, 0);
    EXPECT_FALSE(board.may_push(1, 1)) << "the trainer was not told of the end";
    EXPECT_EQ(ends_of(board).size(), 2U);
  }
  EXPECT_FALSE(board.disagreement().has_value());
}

TEST(HubBoard, TakesAnyNumberForTheNameOfAPush) {
  for (const std::uint64_t request : {std::uint64_t{0}, UINT64_MAX}) {
    HubBoard board(2, 2, 1);
    board.push(1, 0, gradients(request));
    EXPECT_FALSE(board.may_push(1, 0)) << request;
    EXPECT_EQ(board.latest(1), 1U) << request;
    board.push(1, 1, gradients(request, 1));
    EXPECT_FALSE(board.may_push(1, 1)) << request;
    board.end(0, 1, 0);
    EXPECT_THAT(ends_of(board), UnorderedElementsAre(Pair(0U, request), Pair(1U, request)));
    EXPECT_EQ(board.in_flight(), 0U) << request;
    EXPECT_TRUE(board.may_push(1, 0)) << request;
    board.push(1, 0, gradients(request));
    Ends failed;
    board.fail_all(
        [&](unsigned local, std::uint64_t name, double) { failed.emplace_back(local, name); });
    EXPECT_THAT(failed, ElementsAre(Pair(0U, request)));
    EXPECT_EQ(board.in_flight(), 0U) << request;
  }
}

// The first push of two trainers, and the second.
using TwoPushes = std::pair<HubBoard::Push, HubBoard::Push>;

TEST(HubBoard, NeverOpensTheRoundOfAKeyThatWasPushedDifferently) {
  for (const TwoPushes& pushes :
       {TwoPushes{weights(1), gradients(2)}, TwoPushes{gradients(1), weights(2)},
        TwoPushes{gradients(1, 0, 0, 0.5), gradients(2, 1, 0, 0.25)},
        TwoPushes{weights(1, 7), weights(2, 8)}}) {
    HubBoard board(4, 2, 1);
    board.push(3, 0, pushes.first);
    EXPECT_FALSE(board.disagreement().has_value());
    board.push(3, 1, pushes.second);
    EXPECT_EQ(board.disagreement(), 3U);
    EXPECT_FALSE(board.has_pushed(0));
    // Nor does a later one that is pushed differently, and one that is not goes on.
    board.push(2, 0, pushes.first);
    board.push(2, 1, pushes.second);
    board.push(1, 0, gradients(5));
    board.push(1, 1, gradients(6));
    EXPECT_THAT(all_pushed(board, 0), ElementsAre(1U));
    EXPECT_EQ(board.disagreement(), 3U) << "the first one counts";
  }
}

TEST(HubBoard, NeverOpensARoundInWhichOneOfManyDiffers) {
  for (unsigned differs = 0; differs < 4; ++differs) {
    HubBoard board(1, 4, 1);
    for (unsigned local = 0; local < 4; ++local) {
      board.push(0, local, gradients(local, local, 0, local == differs ? 0.25 : 0.5));
    }
    EXPECT_EQ(board.disagreement(), 0U);
    EXPECT_FALSE(board.has_pushed(0));
  }
}

TEST(HubBoard, FailsAllThatIsInFlight) {
  HubBoard board(4, 2, 2);
  board.push(0, 0, gradients(1));  // waits for the other trainer
  board.push(1, 0, gradients(2));  // open
  board.push(1, 1, gradients(3));
  board.push(2, 0, weights(4));  // ended at one executor
  board.push(2, 1, weights(5));
  board.end(0, 2, 0);
  board.push(3, 0, gradients(6));  // over
  board.push(3, 1, gradients(7));
  board.end(0, 3, 0);
  board.end(1, 3, 0);
  EXPECT_EQ(ends_of(board).size(), 2U);
  Ends failed;
  const auto fail = [&](unsigned local, std::uint64_t request, double) {
    failed.emplace_back(local, request);
  };
  board.fail_all(fail);
  EXPECT_THAT(failed, UnorderedElementsAre(Pair(0U, 1U), Pair(0U, 2U), Pair(1U, 3U), Pair(0U, 4U),
                                           Pair(1U, 5U)));
  EXPECT_EQ(board.in_flight(), 0U);
  failed.clear();
  board.fail_all(fail);
  EXPECT_THAT(failed, IsEmpty());
}

TEST(HubBoard, NeedsMoreForMoreOfAnything) {
  const std::uint64_t needs = HubBoard::needs(1'000, 2, 2);
  EXPECT_GE(needs, 1'000 * (sizeof(HubPush) + 2 * sizeof(std::uint64_t)));
  EXPECT_GT(HubBoard::needs(2'000, 2, 2), needs);
  EXPECT_GT(HubBoard::needs(1'000, 3, 2), needs);
  EXPECT_GT(HubBoard::needs(1'000, 2, 3), needs);
}

// The leader's thread pushes and takes ends, and each executor's ends what it has read, in an order
// of its own. Every value that a trainer has pushed is seen, and every push ends once.
TEST(HubBoard, IsSharedByALeaderAndExecutorsWithoutLocks) {
  constexpr std::size_t kKeys = 7;
  constexpr unsigned kTrainers = 2;
  constexpr std::size_t kExecutors = 2;
  constexpr std::uint64_t kRounds = 3'000;  // of each key
  const std::uint64_t seed = protocol::test_seed(20261124);
  SCOPED_TRACE(protocol::seed_trace(seed));
  HubBoard board(kKeys, kTrainers, kExecutors);
  std::uint64_t values[kTrainers][kKeys] = {};
  std::array<std::atomic<std::uint64_t>, kExecutors> wrong{};

  std::vector<std::thread> executors;
  for (std::size_t executor = 0; executor < kExecutors; ++executor) {
    executors.emplace_back([&, executor] {
      std::mt19937_64 random(seed + 1 + executor);
      std::vector<std::uint64_t> rounds(kKeys);
      std::vector<std::uint32_t> open;
      for (std::uint64_t ended = 0; ended < kKeys * kRounds;) {
        while (const auto key = board.next_pushed(executor)) {
          const HubPush& push = board.pushed(*key);
          const std::uint64_t round = ++rounds[*key];
          for (unsigned local = 0; local < kTrainers; ++local) {
            const auto* value = reinterpret_cast<const std::uint64_t*>(push.buffers[local]);
            if (value != &values[local][*key] || *value != round) ++wrong[executor];
          }
          if (push.learning_rate != static_cast<double>(round)) ++wrong[executor];
          open.push_back(*key);
        }
        if (open.empty()) {
          std::this_thread::yield();
          continue;
        }
        std::swap(open[random() % open.size()], open.back());
        board.end(executor, open.back(), 0);
        open.pop_back();
        ++ended;
      }
    });
  }

  std::mt19937_64 random(seed);
  std::uint64_t pushed[kTrainers][kKeys] = {};
  std::uint64_t ended[kTrainers][kKeys] = {};
  std::uint64_t ends = 0;
  unsigned misnamed = 0;
  while (ends < kTrainers * kKeys * kRounds) {
    const auto local = static_cast<unsigned>(random() % kTrainers);
    const auto key = static_cast<std::uint32_t>(random() % kKeys);
    if (pushed[local][key] < kRounds && board.may_push(key, local)) {
      const std::uint64_t round = ++pushed[local][key];
      values[local][key] = round;
      board.push(key, local,
                 {.request = round * kKeys + key,
                  .kind = PushKind::gradients,
                  .learning_rate = static_cast<double>(round),
                  .buffer = reinterpret_cast<std::uint8_t*>(&values[local][key])});
    } else {
      std::this_thread::yield();
    }
    board.take_ended(is_sound, [&](unsigned of, std::uint64_t request, double) {
      const std::uint64_t expected = ++ended[of][request % kKeys];
      if (request / kKeys != expected) ++misnamed;
      ++ends;
    });
  }
  for (std::thread& executor : executors) executor.join();
  EXPECT_EQ(misnamed, 0U);
  for (const auto& count : wrong) EXPECT_EQ(count.load(), 0U);
  EXPECT_EQ(board.in_flight(), 0U);
  EXPECT_FALSE(board.disagreement().has_value());
}

}  // namespace
}  // namespace gradcube::dataplane
