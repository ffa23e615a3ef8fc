#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

#include "dataplane/fabric/frame_fields.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/switch_fixture.h"

namespace gradcube::dataplane {
namespace {

class SwitchImpairmentsTest : public SwitchTest {
 protected:
  void build_impaired(const Impairments& impairments, std::uint64_t seed, bool with_clones = true) {
    EmulatedSwitchOptions options;
    options.seed = seed;
    build(2, options, {}, with_clones);
    switch_->set_impairments(impairments);
  }

  // Sends frames 0..count-1 from server 0 to 1; answers the numbers that arrive, in their order.
  std::vector<std::uint32_t> sent_through(std::uint32_t count) {
    std::vector<std::uint32_t> got;
    const auto look = [&] {
      const auto numbers = received_numbers(1);
      got.insert(got.end(), numbers.begin(), numbers.end());
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_TRUE(send(0, {.to = 1, .number = i}));
      poll();
      look();
    }
    run_until_quiet(look);
    return got;
  }

  static void expect_near_five_sigma(std::uint64_t hits, std::uint32_t trials, double p) {
    EXPECT_NEAR(static_cast<double>(hits), trials * p, 5 * std::sqrt(trials * p * (1 - p)));
  }

  static std::vector<std::uint32_t> numbers_below(std::uint32_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
  }
};

TEST_F(SwitchImpairmentsTest, LosesAsManyFramesAsAsked) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  for (const double loss : {0.001, 0.1, 0.5}) {
    Impairments impairments;
    impairments.loss = loss;
    build_impaired(impairments, seed);
    constexpr std::uint32_t kFrames = 100'000;
    const auto got = sent_through(kFrames);
    EXPECT_EQ(got.size() + switch_->counts(1).dropped_loss, kFrames);
    expect_near_five_sigma(switch_->counts(1).dropped_loss, kFrames, loss);
  }
}

TEST_F(SwitchImpairmentsTest, TheSameSeedHitsTheSameFrames) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  Impairments impairments;
  impairments.loss = impairments.duplicate = impairments.reorder = impairments.corrupt = 0.1;
  std::vector<std::uint32_t> runs[3];
  for (int run = 0; run < 3; ++run) {
    build_impaired(impairments, run < 2 ? seed : seed + 1);
    runs[run] = sent_through(2000);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST_F(SwitchImpairmentsTest, TurningOneImpairmentOnDoesNotChangeWhatAnotherHits) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  Impairments impairments;
  impairments.loss = 0.2;
  build_impaired(impairments, seed);
  const auto lossy = sent_through(2000);
  impairments.duplicate = 0.2;
  build_impaired(impairments, seed);
  auto doubled = sent_through(2000);
  doubled.erase(std::unique(doubled.begin(), doubled.end()), doubled.end());
  EXPECT_EQ(doubled, lossy);
}

TEST_F(SwitchImpairmentsTest, ADoubleIsAnEqualCopyOfItsOwn) {
  Impairments impairments;
  impairments.duplicate = 1;
  build_impaired(impairments, 1);
  rte_mbuf* head = frame({.to = 1, .bytes = 100, .number = 5});
  rte_mbuf* tail = frame({.to = 1, .bytes = 300, .number = 6});
  ASSERT_EQ(rte_pktmbuf_chain(head, tail), 0);
  ASSERT_EQ(ports_[0]->transmit(0, &head, 1), 1);
  while (poll() != 0) {
  }
  const auto got = received(1);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(bytes_of(got[0]), bytes_of(got[1]));
  EXPECT_EQ(got[1]->nb_segs, 1);
  EXPECT_EQ(got[1]->pkt_len, 400u);
  EXPECT_EQ(switch_->counts(1).duplicated, 1u);
  for (rte_mbuf* packet : got) rte_pktmbuf_free(packet);
}

TEST_F(SwitchImpairmentsTest, DamageFlipsAFewBitsOfACopyAndNeverTheOriginal) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  Impairments impairments;
  impairments.corrupt = 1;
  build_impaired(impairments, seed);
  std::map<int, int> flips;
  for (std::uint32_t i = 0; i < 600; ++i) {
    rte_mbuf* original = frame({.to = 1, .number = i});
    const std::string before = bytes_of(original);
    rte_mbuf_refcnt_update(original, 1);
    rte_mbuf* sent = original;
    ASSERT_EQ(ports_[0]->transmit(0, &sent, 1), 1);
    while (poll() != 0) {
    }
    const auto got = received(1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_NE(got[0], original);
    EXPECT_EQ(bytes_of(original), before);
    const std::string after = bytes_of(got[0]);
    ASSERT_EQ(after.size(), before.size());
    EXPECT_EQ(after.substr(0, 6), before.substr(0, 6));
    int bits = 0;
    for (std::size_t at = 0; at < before.size(); ++at) {
      bits += std::popcount(static_cast<unsigned char>(before[at] ^ after[at]));
    }
    ++flips[bits];
    rte_pktmbuf_free(got[0]);
    rte_pktmbuf_free(original);
  }
  EXPECT_EQ(flips.size(), 3u);
  EXPECT_EQ(flips[1] + flips[2] + flips[3], 600);
  EXPECT_EQ(switch_->counts(1).corrupted, 600u);
}

TEST_F(SwitchImpairmentsTest, ReorderingDeliversEverythingALittleLate) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  Impairments impairments;
  impairments.reorder = 0.2;
  build_impaired(impairments, seed);
  constexpr std::uint32_t kFrames = 5000;
  auto got = sent_through(kFrames);
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
  EXPECT_GT(switch_->counts(1).reordered, kFrames / 10);
  for (std::uint32_t at = 0; at < got.size(); ++at) {
    // A frame lets three pass, and as many as are held together with it may come before it, too.
    EXPECT_LE(std::abs(static_cast<int>(at) - static_cast<int>(got[at])), 12) << at;
  }
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, numbers_below(kFrames));
}

TEST_F(SwitchImpairmentsTest, ALateFrameIsReleasedWhenNoOtherComes) {
  Impairments impairments;
  impairments.reorder = 1;
  build_impaired(impairments, 1);
  send(0, {.to = 1, .number = 9});
  poll();
  EXPECT_TRUE(received_numbers(1).empty());
  const std::int64_t due = switch_->shard(0).next_event();
  ASSERT_NE(due, kNever);
  EXPECT_LE(due, clock_.now() + 1'000'000);
  clock_.advance_to(due);
  poll();
  EXPECT_EQ(received_numbers(1), std::vector<std::uint32_t>{9});
  EXPECT_EQ(switch_->shard(0).next_event(), kNever);
}

TEST_F(SwitchImpairmentsTest, ALateFrameIsReleasedAfterImpairmentsEnd) {
  Impairments impairments;
  impairments.reorder = 1;
  build_impaired(impairments, 1);
  send(0, {.to = 1, .number = 1});
  poll();
  switch_->set_impairments(Impairments{});
  std::vector<std::uint32_t> got = sent_through(0);
  EXPECT_EQ(got, std::vector<std::uint32_t>{1});
}

TEST_F(SwitchImpairmentsTest, EverythingAtOnceOverALimitedLinkLeaksNothing) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "GRADCUBE_TEST_SEED=" << seed);
  EmulatedSwitchOptions options;
  options.seed = seed;
  options.profile = {
      .bits_per_second = 10'000'000'000, .delay = 3000, .queue_bytes = 20'000, .mark_bytes = 5000};
  build(4, options);
  switch_->set_impairments({.loss = 0.1, .duplicate = 0.2, .reorder = 0.2, .corrupt = 0.2});
  SeededRandom random(seed);
  std::uint64_t sent = 0;
  std::uint64_t got = 0;
  const auto look = [&] {
    for (std::uint16_t server = 0; server < 4; ++server) got += received_numbers(server).size();
  };
  for (int i = 0; i < 20'000; ++i) {
    FrameSpec spec;
    spec.to = random.below(5);
    spec.bytes = static_cast<std::uint32_t>(60 + random.below(1400));
    if (send(static_cast<std::uint16_t>(random.below(4)), spec)) ++sent;
    clock_.advance(static_cast<std::int64_t>(random.below(300)));
    poll();
    look();
  }
  run_until_quiet(look);
  SwitchPortCounts sum;
  for (std::uint16_t port = 0; port < 4; ++port) add_counters(sum, switch_->counts(port));
  EXPECT_GT(sum.dropped_queue, 0u);
  EXPECT_EQ(got, sent + sum.duplicated - sum.dropped_loss - sum.dropped_queue - sum.unknown_mac);
}

TEST_F(SwitchImpairmentsTest, WithoutClonesFramesPassUnharmedAndAreCounted) {
  Impairments impairments;
  impairments.duplicate = impairments.corrupt = 1;
  build_impaired(impairments, 1, false);
  EXPECT_EQ(sent_through(10), numbers_below(10));
  EXPECT_EQ(switch_->counts(1).copy_failed, 20u);
}

TEST_F(SwitchImpairmentsTest, ImpairmentsChangeWhileTheSwitchRuns) {
  build_impaired({}, 1);
  EXPECT_EQ(sent_through(100).size(), 100u);
  Impairments all_lost;
  all_lost.loss = 1;
  switch_->set_impairments(0, all_lost);
  EXPECT_EQ(sent_through(100).size(), 0u);
  EXPECT_EQ(switch_->impairments(0).loss, 1.0);
  EXPECT_EQ(switch_->impairments(1).loss, 0.0);
  switch_->set_impairments(0, {});
  EXPECT_EQ(sent_through(100).size(), 100u);
}

TEST_F(SwitchImpairmentsTest, ACableThatIsOutCarriesNothingEitherWay) {
  build_impaired({}, 1);
  Impairments out;
  out.up = false;
  switch_->set_impairments(1, out);
  EXPECT_EQ(sent_through(10).size(), 0u);
  send(1, {.to = 0});
  run_until_quiet([] {});
  EXPECT_TRUE(received_numbers(0).empty());
  EXPECT_EQ(switch_->counts(1).dropped_down, 10u);
  EXPECT_EQ(switch_->counts(0).dropped_down, 1u);
  switch_->set_impairments(1, {});
  EXPECT_EQ(sent_through(10).size(), 10u);
}

TEST_F(SwitchImpairmentsTest, ALinkWithAnMtuDropsWhatItsServerSendsAndIsLonger) {
  build_impaired({}, 1);
  send(0, {.to = 1});
  run_until_quiet([] {});
  received_numbers(1);
  const auto frame = static_cast<std::uint32_t>(switch_->counts(1).bytes);
  Impairments impairments;
  impairments.mtu = frame - kEthernetBytes;
  switch_->set_impairments(0, impairments);
  EXPECT_EQ(sent_through(10).size(), 10u);
  --impairments.mtu;
  switch_->set_impairments(0, impairments);
  EXPECT_EQ(sent_through(10).size(), 0u);
  EXPECT_EQ(switch_->counts(1).dropped_long, 10u);
  send(1, {.to = 0});
  run_until_quiet([] {});
  EXPECT_EQ(received_numbers(0).size(), 1u) << "the other direction";
}

}  // namespace
}  // namespace gradcube::dataplane
