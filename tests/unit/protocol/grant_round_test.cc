#include "protocol/grant_round.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

struct Ask {
  std::uint32_t flow;
  CreditRank rank;
  std::uint64_t wanted;
};

// What each flow gets, by its number.
std::map<std::uint32_t, std::uint64_t> hand_out(GrantRound& round, const std::vector<Ask>& asks,
                                                std::uint64_t segments) {
  round.clear();
  for (const Ask& ask : asks) round.add(ask.flow, ask.rank, ask.wanted);
  round.hand_out(segments);
  std::map<std::uint32_t, std::uint64_t> granted;
  for (const GrantRound::Claim& claim : round.claims()) granted[claim.flow] = claim.granted;
  return granted;
}

GrantRound grant_round(std::size_t flows) {
  GrantRound round;
  round.reserve(flows);
  return round;
}

// The sums of what the flows get when `rounds` rounds hand out so many segments each.
std::vector<std::uint64_t> sums(const std::vector<Ask>& asks, unsigned rounds,
                                std::uint64_t segments) {
  GrantRound round = grant_round(asks.size());
  std::vector<std::uint64_t> sum(asks.size());
  for (unsigned turn = 0; turn < rounds; ++turn) {
    for (const auto& [flow, granted] : hand_out(round, asks, segments)) sum[flow] += granted;
  }
  return sum;
}

using Sums = std::vector<std::uint64_t>;

TEST(GrantRound, WithoutAClaimThereIsNothingToHandOut) {
  GrantRound round = grant_round(4);
  EXPECT_EQ(round.wanted(), 0U);
  round.hand_out(10);
  EXPECT_TRUE(round.claims().empty());
}

TEST(GrantRound, NobodyGetsMoreThanItWants) {
  GrantRound round = grant_round(3);
  const auto granted = hand_out(round, {{0, {}, 3}, {1, {}, 50}, {2, {}, 1}}, 1'000);
  EXPECT_EQ(round.wanted(), 54U);
  EXPECT_EQ(granted, (std::map<std::uint32_t, std::uint64_t>{{0, 3}, {1, 50}, {2, 1}}));
}

TEST(GrantRound, EqualClaimsGetEqualShares) {
  EXPECT_EQ(sums({{0, {}, 99}, {1, {}, 99}, {2, {}, 99}}, 1, 30), (Sums{10, 10, 10}));
}

TEST(GrantRound, WhatOneDoesNotWantIsSharedByTheOthers) {
  EXPECT_EQ(sums({{0, {}, 2}, {1, {}, 99}, {2, {}, 99}}, 1, 22), (Sums{2, 10, 10}));
}

TEST(GrantRound, ClearForgetsTheClaims) {
  GrantRound round = grant_round(2);
  hand_out(round, {{0, {}, 5}, {1, {}, 5}}, 4);
  EXPECT_EQ(hand_out(round, {{1, {}, 5}}, 4), (std::map<std::uint32_t, std::uint64_t>{{1, 4}}));
}

TEST(GrantRound, TheLowestRankIsServedFirst) {
  const std::vector<Ask> asks{{0, {.step = 2}, 10}, {1, {.step = 0}, 10}, {2, {.step = 1}, 10}};
  EXPECT_EQ(sums(asks, 1, 5), (Sums{0, 5, 0}));
  EXPECT_EQ(sums(asks, 1, 14), (Sums{0, 10, 4}));
  EXPECT_EQ(sums(asks, 1, 22), (Sums{2, 10, 10}));
}

TEST(GrantRound, ARankDoesNotMatterBetweenJobs) {
  EXPECT_EQ(sums({{0, {.job = 1, .step = 9}, 99}, {1, {.job = 2, .step = 0}, 99}}, 1, 10),
            (Sums{5, 5}));
}

TEST(GrantRound, NamesTheRankThatComesFirstOfTheFirstJob) {
  GrantRound round = grant_round(3);
  round.add(0, {.job = 1, .step = 4}, 1);
  round.add(1, {.job = 9, .step = 2}, 1);
  round.add(2, {.job = 5, .step = 3}, 1);
  EXPECT_EQ(round.first_rank().step, 4U);
  EXPECT_EQ(round.first_rank().job, 1U);
}

TEST(GrantRound, JobsGetPartsByWeightHoweverManyFlowsTheyHave) {
  const std::vector<Ask> asks{{0, {.job = 1, .weight = 1}, 999},
                              {1, {.job = 1, .weight = 1}, 999},
                              {2, {.job = 1, .weight = 1}, 999},
                              {3, {.job = 2, .weight = 3}, 999}};
  EXPECT_EQ(sums(asks, 1, 120), (Sums{10, 10, 10, 90}));
}

TEST(GrantRound, JobsGetPartsByWeightAlsoWhereEachRoundHandsOutLittle) {
  const std::vector<Ask> asks{{0, {.job = 1, .weight = 1}, 999},
                              {1, {.job = 5, .weight = 4}, 999},
                              {2, {.job = 7, .weight = 2}, 999}};
  for (const std::uint64_t segments : {1U, 2U, 3U, 5U}) {
    const Sums sum = sums(asks, 700, segments);
    EXPECT_EQ(sum, (Sums{100 * segments, 400 * segments, 200 * segments})) << segments;
  }
}

TEST(GrantRound, FlowsTakeTurnsOverRounds) {
  const std::vector<Ask> asks{{0, {}, 9}, {1, {}, 9}, {2, {}, 9}};
  EXPECT_EQ(sums(asks, 30, 1), (Sums{10, 10, 10}));
  EXPECT_EQ(sums(asks, 30, 2), (Sums{20, 20, 20}));
}

TEST(GrantRound, FlowsTakeTurnsAlsoWhileJobsDo) {
  const std::vector<Ask> asks{{0, {.job = 1}, 9}, {1, {.job = 1}, 9}, {2, {.job = 2}, 9}};
  EXPECT_EQ(sums(asks, 40, 1), (Sums{10, 10, 20}));
}

TEST(GrantRound, FlowsTakeTurnsAlsoWhileALowerRankComesBetween) {
  GrantRound round = grant_round(3);
  Sums sum(3);
  for (int turn = 0; turn < 40; ++turn) {
    std::vector<Ask> asks{{0, {.step = 1}, 9}, {1, {.step = 1}, 9}};
    if (turn % 2 == 0) asks.push_back({2, {.step = 0}, 1});
    for (const auto& [flow, granted] : hand_out(round, asks, 1)) sum[flow] += granted;
  }
  EXPECT_EQ(sum, (Sums{10, 10, 20}));
}

TEST(GrantRound, TheLastJobNumberOfAllIsFollowedByTheFirst) {
  const std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(sums({{0, {.job = 0}, 9}, {1, {.job = last}, 9}}, 20, 1), (Sums{10, 10}));
}

// The rules once more, one segment at a time and without any care for speed.
class PlainRules {
 public:
  std::map<std::uint32_t, std::uint64_t> hand_out(const std::vector<Ask>& asks,
                                                  std::uint64_t segments) {
    std::map<std::uint32_t, std::uint64_t> granted;
    for (const Ask& ask : asks) granted[ask.flow] = 0;
    for (; segments > 0; --segments) {
      std::vector<Ask> want;
      for (const Ask& ask : asks) {
        if (granted[ask.flow] < ask.wanted) want.push_back(ask);
      }
      if (want.empty()) break;
      const Ask next = *std::min_element(want.begin(), want.end(),
                                         [this](auto& a, auto& b) { return place(a) < place(b); });
      take_turn(next.rank);
      ++granted[next.flow];
      served_[next.flow] = ++now_;
    }
    return granted;
  }

 private:
  // The job in its turn comes first, then those after it, then those before it.
  std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t> place(const Ask& ask) {
    const std::uint32_t from = had_ < weight_ ? job_ : job_ + 1;
    return {ask.rank.job - from, ask.rank.step, served_[ask.flow], ask.flow};
  }

  void take_turn(const CreditRank& rank) {
    if (rank.job != job_ || had_ == weight_) had_ = 0;
    job_ = rank.job;
    weight_ = rank.weight;
    ++had_;
  }

  std::map<std::uint32_t, std::uint64_t> served_;
  std::uint64_t now_ = 0;
  std::uint32_t job_ = 0;
  std::uint32_t weight_ = 1;
  std::uint32_t had_ = 0;
};

TEST(GrantRound, DoesWhatItsRulesSayWhoeverAsksForHowMuch) {
  const std::uint64_t seed = test_seed(7);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kFlows = 12;
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<CreditRank> ranks;
    const std::uint32_t heavier = 1 + static_cast<std::uint32_t>(random() % 4);
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
      const auto job = static_cast<std::uint32_t>(random() % 3);
      ranks.push_back({.job = job,
                       .weight = 1 + job * heavier,
                       .step = static_cast<std::uint16_t>(random() % 3)});
    }
    GrantRound round = grant_round(kFlows);
    PlainRules rules;
    for (int turn = 0; turn < 100; ++turn) {
      std::vector<Ask> asks;
      for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
        if (random() % 3 != 0) asks.push_back({flow, ranks[flow], 1 + random() % 6});
      }
      const std::uint64_t segments = random() % 20;
      ASSERT_EQ(hand_out(round, asks, segments), rules.hand_out(asks, segments))
          << "trial " << trial << ", round " << turn;
    }
  }
}

}  // namespace
}  // namespace gradcube::protocol
