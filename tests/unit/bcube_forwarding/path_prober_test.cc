// When which paths are probed, and what becomes of the answers.

#include "bcube_forwarding/path_prober.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <vector>

#include "bcube_forwarding/path_set.h"

namespace gradcube::bcube {
namespace {

using Time = PathProber::Time;
using State = PathNews::State;

constexpr Time kInterval = 100'000'000;
constexpr Time kStep = 1'000'000;

AddressSpace cube() {
  const std::vector<unsigned> radices(3, 4);
  return AddressSpace(radices);
}

std::vector<Route> paths_to(ServerId server) { return parallel_paths(cube(), 0, server); }

std::vector<std::uint32_t> begin(PathProber& prober, ServerId server, Time now) {
  const auto numbers = prober.begin(server, paths_to(server), now);
  return {numbers.begin(), numbers.end()};
}

TEST(PathProber, ProbesNothingWithoutAnIntervalUntilSomebodyAsks) {
  PathProber prober(0, 1);
  EXPECT_FALSE(prober.round_due(1'000'000'000));
  EXPECT_EQ(prober.next(0), std::nullopt);
  EXPECT_EQ(prober.next_event(true), PathProber::kNever);
  prober.ask(5);
  EXPECT_EQ(prober.next_event(false), 0);
  EXPECT_EQ(prober.next(0), 5u);
  EXPECT_EQ(prober.asked(5), nullptr);
}

TEST(PathProber, TellsWhatHasAnsweredAndWhatHasNot) {
  PathProber prober(kInterval, 1);
  prober.ask(21);
  ASSERT_EQ(prober.next(kStep), 21u);
  const auto numbers = begin(prober, 21, kStep);
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_TRUE(prober.on_answer(21, numbers[0], 700, 3 * kStep));
  EXPECT_TRUE(prober.on_answer(21, numbers[2], 800, 4 * kStep));
  EXPECT_EQ(prober.take_result(4 * kStep), nullptr) << "one is missing";
  EXPECT_EQ(prober.next_event(false), kStep + PathProber::kPatience);
  const PathProber::News* news = prober.take_result(kStep + PathProber::kPatience);
  ASSERT_NE(news, nullptr);
  EXPECT_EQ(news->server, 21u);
  EXPECT_EQ(news->paths[0].state, State::answers);
  EXPECT_EQ(news->paths[0].round_trip, 2 * kStep);
  EXPECT_EQ(news->paths[0].bits_per_second_left, 700u);
  EXPECT_EQ(news->paths[1].state, State::silent);
  EXPECT_EQ(news->paths[2].round_trip, 3 * kStep);
  EXPECT_EQ(prober.take_result(kStep + PathProber::kPatience), nullptr) << "told once";
  ASSERT_NE(prober.asked(21), nullptr);
  EXPECT_EQ(prober.asked(21)->paths.size(), 3u);
}

TEST(PathProber, IsDoneAsSoonAsAllHaveAnswered) {
  PathProber prober(kInterval, 1);
  const auto numbers = begin(prober, 21, 0);
  for (const std::uint32_t number : numbers) {
    EXPECT_EQ(prober.take_result(kStep), nullptr);
    EXPECT_TRUE(prober.on_answer(21, number, 1, kStep));
  }
  EXPECT_LE(prober.next_event(true), kStep);
  EXPECT_NE(prober.take_result(kStep), nullptr);
}

TEST(PathProber, BelievesNoAnswerToWhatItHasNotAsked) {
  PathProber prober(kInterval, 1);
  const auto numbers = begin(prober, 21, 0);
  EXPECT_FALSE(prober.on_answer(22, numbers[0], 1, kStep)) << "of another server";
  EXPECT_FALSE(prober.on_answer(21, numbers[0] + 1, 1, kStep)) << "of another number";
  EXPECT_TRUE(prober.on_answer(21, numbers[0], 1, kStep));
  EXPECT_FALSE(prober.on_answer(21, numbers[0], 2, kStep)) << "twice";
  prober.take_result(PathProber::kPatience);
  EXPECT_FALSE(prober.on_answer(21, numbers[1], 1, PathProber::kPatience)) << "too late";
}

TEST(PathProber, AServerThatNoPathLeadsToHasNone) {
  PathProber prober(kInterval, 1);
  prober.ask(21);
  prober.begin(*prober.next(0), {}, 0);
  EXPECT_NE(prober.take_result(0), nullptr);
  ASSERT_NE(prober.asked(21), nullptr);
  EXPECT_TRUE(prober.asked(21)->paths.empty());
}

// Plays an owner whose flows go to these servers, and whose probes are answered at once. Returns
// how often each was probed.
std::map<ServerId, unsigned> probed(PathProber& prober, const std::vector<ServerId>& servers,
                                    Time duration) {
  std::map<ServerId, unsigned> times;
  for (Time now = 0; now < duration; now += kStep) {
    prober.take_result(now);
    if (prober.round_due(now)) prober.begin_round(servers, now);
    const auto server = prober.next(now);
    if (!server) continue;
    ++times[*server];
    for (const std::uint32_t number : begin(prober, *server, now)) {
      EXPECT_TRUE(prober.on_answer(*server, number, 1, now));
    }
  }
  return times;
}

TEST(PathProber, ProbesEachServerAboutOnceInAnInterval) {
  PathProber prober(kInterval, 1);
  const auto times = probed(prober, {5, 21, 42}, 100 * kInterval);
  EXPECT_EQ(times.size(), 3u);
  for (const auto& [server, count] : times) {
    EXPECT_GT(count, 60u) << server;
    EXPECT_LT(count, 150u) << server;
  }
}

TEST(PathProber, ProbesNoMoreServersInAnIntervalThanItPromisesAndForgetsNone) {
  PathProber prober(kInterval, 1);
  std::vector<ServerId> servers(63);
  for (ServerId server = 0; server < 63; ++server) servers[server] = server + 1;
  const auto times = probed(prober, servers, 100 * kInterval);
  EXPECT_EQ(times.size(), 63u);
  unsigned all = 0;
  for (const auto& [server, count] : times) {
    all += count;
    EXPECT_GT(count, 5u) << server;
  }
  EXPECT_LE(all, 110 * PathProber::kMostInARound);
}

TEST(PathProber, RestsAfterAMove) {
  PathProber prober(kInterval, 1);
  prober.begin_round({5, 21}, 0);
  prober.on_move(0);
  Time now = 0;
  while (!prober.round_due(now) && !prober.next(now)) now += kStep;
  EXPECT_GE(now, kInterval / 2);
}

// With the same seed all is the same; with others the pauses differ.
TEST(PathProber, DrawsItsPausesFromTheSeed) {
  std::set<Time> rounds;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PathProber prober(kInterval, seed);
    prober.begin_round({}, 0);
    const Time next = prober.next_event(true);
    EXPECT_GE(next, kInterval / 2);
    EXPECT_LE(next, 3 * kInterval / 2);
    PathProber same(kInterval, seed);
    same.begin_round({}, 0);
    EXPECT_EQ(same.next_event(true), next);
    rounds.insert(next);
  }
  EXPECT_GT(rounds.size(), 10u);
}

TEST(PathProber, RemembersOnlyTheLastServersThatSomebodyAskedAbout) {
  PathProber prober(0, 1);
  for (ServerId server = 1; server <= 40; ++server) {
    prober.ask(server);
    while (const auto next = prober.next(0)) {
      prober.begin(*next, {}, 0);
      prober.take_result(0);
    }
  }
  EXPECT_EQ(prober.asked(24), nullptr);
  EXPECT_NE(prober.asked(25), nullptr);
}

}  // namespace
}  // namespace gradcube::bcube
