// Which send meets which receive, in whatever order they come.

#include "dataplane/engine/messages/mail_matcher.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

using Met = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class Matcher {
 public:
  void send(std::uint32_t number, const MailAddress& address) {
    const auto want = matcher.add_send(number, address);
    if (want.has_value()) met.emplace_back(number, want->number);
  }
  void want(std::uint64_t sequence, std::uint32_t number, const MailAddress& address) {
    matcher.add_want({sequence, number, address, 0});
  }
  void settle(std::uint64_t sequence) {
    matcher.settle(
        sequence,
        [this](std::uint32_t number, const Want& want) { met.emplace_back(number, want.number); },
        [this](std::uint32_t number) { withdrawn.push_back(number); });
  }

  explicit Matcher(std::size_t most = 1024) : matcher(most, most, 0x5eed) {}

  MailMatcher matcher;
  Met met;
  std::vector<std::uint32_t> withdrawn;
};

TEST(MailMatcher, PairsByTrainersAndTag) {
  Matcher matcher;
  matcher.send(1, {0, 0, 7});
  matcher.want(0, 10, {0, 1, 7});
  matcher.want(1, 11, {1, 0, 7});
  matcher.want(2, 12, {0, 0, 8});
  matcher.settle(3);
  EXPECT_TRUE(matcher.met.empty());
  matcher.want(3, 13, {0, 0, 7});
  matcher.settle(4);
  EXPECT_EQ(matcher.met, (Met{{1, 13}}));
  matcher.send(2, {0, 1, 7});
  EXPECT_EQ(matcher.met.back(), (std::pair<std::uint32_t, std::uint32_t>{2, 10}));
  EXPECT_EQ(matcher.matcher.wants(), 2u);
}

TEST(MailMatcher, WaitsForWantsThatWereSentBefore) {
  Matcher matcher;
  matcher.want(5, 11, {});
  matcher.settle(3);
  EXPECT_TRUE(matcher.matcher.any_unsettled());
  matcher.send(1, {});
  EXPECT_TRUE(matcher.met.empty());
  matcher.want(3, 10, {});
  matcher.settle(4);
  EXPECT_EQ(matcher.met, (Met{{1, 10}}));
  matcher.settle(6);
  EXPECT_FALSE(matcher.matcher.any_unsettled());
  matcher.send(2, {});
  EXPECT_EQ(matcher.met.back(), (std::pair<std::uint32_t, std::uint32_t>{2, 11}));
}

TEST(MailMatcher, TakesOutWhatHasNotMetAnythingAndNothingElse) {
  for (std::uint32_t which = 0; which < 3; ++which) {
    Matcher matcher;
    for (std::uint32_t i = 0; i < 3; ++i) matcher.want(i, 10 + i, {});
    matcher.matcher.add_withdrawal(3, 10 + which);
    matcher.settle(3);
    EXPECT_TRUE(matcher.withdrawn.empty()) << "it counts where it was sent";
    matcher.settle(4);
    EXPECT_EQ(matcher.withdrawn, (std::vector<std::uint32_t>{10 + which}));
    EXPECT_EQ(matcher.matcher.wants(), 2u);
    matcher.want(4, 20, {});
    matcher.settle(5);
    for (std::uint32_t i = 0; i < 3; ++i) matcher.send(i, {});
    Met met;
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (i != which) met.emplace_back(static_cast<std::uint32_t>(met.size()), 10 + i);
    }
    met.emplace_back(2u, 20u);
    EXPECT_EQ(matcher.met, met);
    matcher.matcher.add_withdrawal(5, 20);  // which has met
    matcher.matcher.add_withdrawal(6, 77);  // which was never here
    matcher.settle(7);
    EXPECT_EQ(matcher.withdrawn.size(), 1u);
  }
}

TEST(MailMatcher, TakesOutSendsInTheSameWay) {
  for (std::uint32_t which = 0; which < 3; ++which) {
    Matcher matcher;
    for (std::uint32_t i = 0; i < 3; ++i) matcher.send(i, {});
    EXPECT_TRUE(matcher.matcher.take_out_send(which));
    EXPECT_FALSE(matcher.matcher.take_out_send(which));
    matcher.send(7, {});
    for (std::uint32_t i = 0; i < 3; ++i) matcher.want(i, i, {});
    matcher.settle(3);
    Met met;
    for (const std::uint32_t send : {0u, 1u, 2u, 7u}) {
      if (send != which) met.emplace_back(send, static_cast<std::uint32_t>(met.size()));
    }
    EXPECT_EQ(matcher.met, met);
    EXPECT_FALSE(matcher.matcher.take_out_send(7));
  }
}

// A number that is used again stands for what was sent last under it.
TEST(MailMatcher, WithdrawsTheLastWantOfItsNumberThatWasSentBefore) {
  Matcher matcher;
  matcher.want(0, 5, {0, 0, 1});
  matcher.settle(1);
  matcher.send(0, {0, 0, 1});
  matcher.matcher.add_withdrawal(1, 5);
  matcher.want(2, 5, {0, 0, 2});
  matcher.settle(3);
  EXPECT_TRUE(matcher.withdrawn.empty());
  matcher.matcher.add_withdrawal(3, 5);
  matcher.settle(4);
  EXPECT_EQ(matcher.withdrawn, (std::vector<std::uint32_t>{5}));
  matcher.send(1, {0, 0, 2});
  EXPECT_EQ(matcher.met.size(), 1u);
}

// The k-th of each address meets the k-th, however the wants are reordered on their way.
TEST(MailMatcher, KeepsTheOrderOfEachAddress) {
  const std::uint64_t seed = protocol::test_seed(11);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kMessages = 400;
  std::map<std::uint64_t, std::vector<std::uint32_t>> sends;
  std::map<std::uint64_t, std::vector<std::uint32_t>> wants;
  std::vector<std::pair<std::uint64_t, MailAddress>> arriving;  // by sequence, which is the number
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    const std::uint64_t tag = random() % 5;
    wants[tag].push_back(i);
    arriving.push_back({i, {0, 0, tag}});
  }
  // Each is at most a few places away from its own.
  for (std::size_t i = 0; i + 8 < arriving.size(); i += 4) {
    std::shuffle(arriving.begin() + static_cast<std::ptrdiff_t>(i),
                 arriving.begin() + static_cast<std::ptrdiff_t>(i) + 8, random);
  }
  Matcher matcher;
  std::vector<bool> here(kMessages, false);
  std::uint32_t number = 0;
  std::uint64_t cumulative = 0;
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, of_tag] : wants) tags.insert(tags.end(), of_tag.size(), tag);
  std::shuffle(tags.begin(), tags.end(), random);
  std::size_t arrived = 0;
  while (number < tags.size() || arrived < arriving.size()) {
    if (arrived == arriving.size() || (number < tags.size() && random() % 2 == 0)) {
      sends[tags[number]].push_back(number);
      matcher.send(number, {0, 0, tags[number]});
      ++number;
      continue;
    }
    const auto& [sequence, address] = arriving[arrived++];
    matcher.want(sequence, static_cast<std::uint32_t>(sequence), address);
    here[sequence] = true;
    while (cumulative < kMessages && here[cumulative]) ++cumulative;
    matcher.settle(cumulative);
  }
  ASSERT_EQ(matcher.met.size(), kMessages);
  std::map<std::uint32_t, std::uint32_t> want_of(matcher.met.begin(), matcher.met.end());
  for (const auto& [tag, of_tag] : sends) {
    for (std::size_t k = 0; k < of_tag.size(); ++k) EXPECT_EQ(want_of[of_tag[k]], wants[tag][k]);
  }
}

// Either side waits for the other, all with tags of their own or all with the same; and what has
// met makes room.
TEST(MailMatcher, LooksAtFewHoweverManyWait) {
  constexpr std::uint32_t kMost = 16 * 1024;
  Matcher matcher(kMost);
  std::uint64_t sequence = 0;
  for (const std::uint64_t tags : {std::uint64_t{kMost}, std::uint64_t{1}}) {
    for (const bool sends_first : {true, false}) {
      const std::uint64_t before = matcher.matcher.looks();
      const auto send_all = [&] {
        for (std::uint32_t i = 0; i < kMost; ++i) matcher.send(i, {3, 5, i % tags << 32});
      };
      if (sends_first) send_all();
      for (std::uint32_t i = 0; i < kMost; ++i) {
        matcher.want(sequence++, i, {3, 5, i % tags << 32});
        matcher.settle(sequence);
      }
      if (!sends_first) send_all();
      EXPECT_LT(matcher.matcher.looks() - before, 2U * 8U * kMost);
      ASSERT_EQ(matcher.met.size(), kMost);
      for (std::uint32_t i = 0; i < kMost; ++i) EXPECT_EQ(matcher.met[i], std::pair(i, i));
      EXPECT_EQ(matcher.matcher.wants(), 0u);
      matcher.met.clear();
    }
  }
}

TEST(MailMatcher, TakesOutWhatWaitsForATrainerThatHasGone) {
  Matcher matcher;
  for (std::uint32_t i = 0; i < 300; ++i) {
    matcher.send(i, {0, static_cast<std::uint8_t>(i % 3), i / 6});
    matcher.want(i, i, {static_cast<std::uint8_t>(1 + i % 3), 9, i / 6});
    matcher.settle(i + 1);
  }
  EXPECT_TRUE(matcher.met.empty());
  std::map<std::pair<bool, std::uint32_t>, unsigned> taken;
  const auto sweep = [&](std::size_t steps) {
    return matcher.matcher.sweep(
        steps,
        [](bool sends, const MailAddress& each) { return sends ? each.to == 1 : each.from == 2; },
        [&](bool sends, std::uint32_t number) {
          ++taken[{sends, number}];
        });
  };
  EXPECT_TRUE(sweep(1)) << "nothing was begun";
  EXPECT_TRUE(matcher.matcher.begin_sweep());
  unsigned parts = 1;
  for (; !sweep(10); ++parts) EXPECT_LE(taken.size(), 10 * parts);
  EXPECT_GE(parts, (512u + 200u) / 10) << "of 2,048 that may wait: 512 places";
  EXPECT_EQ(taken.size(), 200u);
  for (const auto& [which, times] : taken)
    EXPECT_EQ(std::pair(which.second % 3, times), std::pair(1u, 1u));
  EXPECT_EQ(matcher.matcher.wants(), 200u);
  // The others still find each other, in their order; those that were taken out do not.
  matcher.send(1000, {1, 9, 0});
  matcher.send(1001, {2, 9, 0});
  EXPECT_EQ(matcher.met, (Met{{1000, 0}}));
  const Want asked{300, 400, {5, 9, 1}, 0};
  matcher.matcher.add_want(asked);
  matcher.matcher.settle(
      301, [](std::uint32_t, const Want&) {}, [](std::uint32_t) {},
      [](const Want&) { return false; });
  EXPECT_EQ(matcher.matcher.wants(), 199u) << "it was told not to wait";
}

}  // namespace
}  // namespace gradcube::dataplane
