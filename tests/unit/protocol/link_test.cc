// Both halves of a flow over a link that delays, loses, doubles and reorders, on a virtual clock.
#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <queue>
#include <random>
#include <vector>

#include "protocol/credit.h"
#include "protocol/receive_window.h"
#include "protocol/send_window.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

struct LinkSettings {
  Nanoseconds delay = 10 * kMicrosecond;
  Nanoseconds per_segment = 1'200;  // 1500 bytes at 10 Gbit/s
  double loss = 0;                  // a damaged frame is a lost one: its CRC is wrong
  double duplication = 0;
  double reordering = 0;
  Nanoseconds jitter = 50 * kMicrosecond;  // of a frame that is reordered
  std::uint64_t lost_from = ~0ULL;  // first transmissions from this sequence on are lost (a tail)
};

struct Frame {
  bool is_segment = false;
  bool is_probe = false;
  std::uint8_t backlog = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;
  std::uint64_t selective = 0;
  std::uint16_t credit = 0;
};

struct Event {
  Nanoseconds at;
  std::uint64_t order;
  int to;
  Frame frame;
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

// One end: sends `total` segments and receives the other end's.
struct Party {
  SendWindow send;
  ReceiveWindow receive;
  CreditPool pool;
  CreditPool::Handle flow = 0;
  std::uint64_t end = 0;       // its last segment's sequence + 1
  std::vector<unsigned> uses;  // how often each of the other end's segments was delivered
  Nanoseconds line_free = 0;

  Party(const RecoverySettings& settings, const CreditSettings& credit, std::uint64_t sends,
        std::uint64_t receives, std::uint64_t first)
      : send(settings, 1, first),
        receive(1, first),
        pool(credit),
        end(first + sends),
        uses(receives) {
    flow = pool.add(&receive);
  }
};

class Link {
 public:
  Link(const LinkSettings& settings, std::uint64_t seed, std::uint64_t from_a, std::uint64_t from_b,
       const CreditSettings& credit = {}, std::uint64_t first = 0)
      : settings_(settings),
        first_(first),
        random_(seed),
        parties_{Party(recovery_, credit, from_a, from_b, first),
                 Party(recovery_, credit, from_b, from_a, first)} {}

  // Runs until everything is acknowledged at both ends; false if virtual time ran out.
  bool run(Nanoseconds until) {
    while (!done()) {
      Nanoseconds next = events_.empty() ? kNever : events_.top().at;
      for (int party : {0, 1}) next = std::min(next, wake_of(parties_[party]));
      now_ = std::max(now_, next);
      if (now_ > until) return false;
      while (!events_.empty() && events_.top().at <= now_) {
        const Event event = events_.top();
        events_.pop();
        take(parties_[event.to], event.frame);
      }
      for (int party : {0, 1}) pump(party);
    }
    return true;
  }

  Party& a() { return parties_[0]; }
  Party& b() { return parties_[1]; }
  Nanoseconds now() const { return now_; }
  std::uint64_t lost_segments() const { return lost_segments_; }

  void expect_all_delivered_once() {
    for (Party& party : parties_) {
      EXPECT_EQ(std::count(party.uses.begin(), party.uses.end(), 1U),
                static_cast<std::ptrdiff_t>(party.uses.size()));
      EXPECT_EQ(party.send.counters().refused, 0U);
    }
  }

 private:
  static Nanoseconds wake_of(const Party& party) {
    const bool ready = (party.send.may_send() && party.send.next() < party.end) ||
                       party.send.next_lost().has_value();
    return std::min({party.send.deadline(), party.receive.acknowledgement_deadline(),
                     ready ? party.line_free : kNever});
  }

  bool done() const {
    return std::all_of(parties_.begin(), parties_.end(),
                       [](const Party& party) { return party.send.cumulative() == party.end; });
  }

  void take(Party& party, const Frame& frame) {
    const AckResult result =
        party.send.on_acknowledgement(frame.acknowledged, frame.selective, frame.credit, now_);
    EXPECT_NE(result.status, AckStatus::refused);
    if (frame.is_probe) party.receive.on_probe();
    if (frame.is_segment) {
      std::uint64_t sequence = 0;
      const Arrival arrival = party.receive.arrive(frame.sequence, sequence, now_);
      EXPECT_NE(arrival, Arrival::outside);
      if (arrival == Arrival::fresh) ++party.uses.at(sequence - first_);
      party.pool.set_consumed(party.flow, party.receive.cumulative());
    }
    party.pool.on_arrival(party.flow, frame.backlog);
  }

  void pump(int index) {
    Party& party = parties_[index];
    if (party.send.deadline() <= now_) party.send.on_timer(now_);
    party.pool.distribute();
    while (party.line_free <= now_) {
      if (const auto lost = party.send.next_lost()) {
        party.send.record_resend(*lost, now_);
        transmit(index, true, *lost);
      } else if (party.send.may_send() && party.send.next() < party.end) {
        transmit(index, true, party.send.record_send(now_));
      } else {
        break;
      }
    }
    if (party.send.probe_owed()) {
      party.send.record_probe();
      transmit(index, false, party.send.next(), true);
    }
    if (party.receive.acknowledgement_owed(now_)) transmit(index, false, party.send.next());
  }

  bool happens(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }

  void transmit(int from, bool is_segment, std::uint64_t sequence, bool is_probe = false) {
    Party& party = parties_[from];
    const Frame frame{.is_segment = is_segment,
                      .is_probe = is_probe,
                      .backlog = static_cast<std::uint8_t>(
                          std::min<std::uint64_t>(255, party.end - party.send.next())),
                      .sequence = static_cast<std::uint32_t>(sequence),
                      .acknowledged = party.receive.acknowledged(),
                      .selective = party.receive.selective(),
                      .credit = party.receive.credit()};
    party.receive.acknowledged_now();
    Nanoseconds at = std::max(party.line_free, now_);
    if (is_segment) at = party.line_free = at + settings_.per_segment;
    at += settings_.delay;
    bool lost = happens(settings_.loss);
    if (is_segment && from == 0 && sequence >= settings_.lost_from && sequence >= tail_seen_) {
      tail_seen_ = sequence + 1;
      lost = true;
    }
    if (lost) {
      lost_segments_ += is_segment ? 1 : 0;
      return;
    }
    const int copies = happens(settings_.duplication) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      Nanoseconds late = 0;
      if (happens(settings_.reordering)) {
        late = std::uniform_int_distribution<Nanoseconds>(0, settings_.jitter)(random_);
      }
      events_.push({at + late, order_++, 1 - from, frame});
    }
  }

  RecoverySettings recovery_;
  LinkSettings settings_;
  std::uint64_t first_;
  std::mt19937_64 random_;
  std::array<Party, 2> parties_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Nanoseconds now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t lost_segments_ = 0;
  std::uint64_t tail_seen_ = 0;
};

constexpr Nanoseconds kSecond = 1'000 * kMillisecond;

TEST(Link, WithoutLossNothingIsEverSentTwice) {
  for (const Nanoseconds delay : {1 * kMicrosecond, 10 * kMicrosecond, 40 * kMicrosecond}) {
    for (const Nanoseconds per_segment : {100L, 1'200L, 72'000L}) {
      for (const std::uint64_t back : {0ULL, 1ULL, 2'000ULL}) {
        SCOPED_TRACE(testing::Message() << delay << ' ' << per_segment << ' ' << back);
        LinkSettings settings{.delay = delay};
        settings.per_segment = per_segment;
        Link link(settings, 1, 2'000, back);
        ASSERT_TRUE(link.run(10 * kSecond));
        link.expect_all_delivered_once();
        EXPECT_EQ(link.a().send.counters().resent, 0U);
        EXPECT_EQ(link.b().send.counters().resent, 0U);
      }
    }
  }
}

TEST(Link, WithoutLossTheLineStaysFull) {
  Link link({}, 1, 5'000, 0);
  ASSERT_TRUE(link.run(kSecond));
  EXPECT_LE(link.now(), 5'000 * 1'200 * 102 / 100 + 200 * kMicrosecond);
}

TEST(Link, ABudgetOfTwiceTheBandwidthDelayProductKeepsTheLineFull) {
  const CreditSettings credit{.budget_bytes = 36 * 1500, .segment_bytes = 1500};
  for (const std::uint64_t back : {0, 5'000}) {
    Link link({}, 1, 5'000, back, credit);
    ASSERT_TRUE(link.run(kSecond));
    link.expect_all_delivered_once();
    EXPECT_LE(link.now(), 5'000 * 1'200 * 102 / 100 + 200 * kMicrosecond);
    EXPECT_EQ(link.a().send.counters().credit_probes, 0U);
  }
}

TEST(Link, RandomLossIsRepairedWithFewResendsAndLittleTime) {
  for (const double loss : {0.001, 0.01, 0.05}) {
    for (std::uint64_t round = 0; round < 5; ++round) {
      const std::uint64_t seed = test_seed(100 + round);
      SCOPED_TRACE(seed_trace(seed));
      Link link({.loss = loss}, seed, 20'000, 20'000);
      ASSERT_TRUE(link.run(10 * kSecond));
      link.expect_all_delivered_once();
      const auto resent = link.a().send.counters().resent + link.b().send.counters().resent;
      RecordProperty("resent", static_cast<int>(resent));
      RecordProperty("lost", static_cast<int>(link.lost_segments()));
      EXPECT_GE(resent, link.lost_segments());
      EXPECT_LE(static_cast<double>(resent), 1.2 * static_cast<double>(link.lost_segments()) + 2);
      if (loss <= 0.01) {
        EXPECT_LE(link.now(), 20'000 * 1'200 * 11 / 10);
      }
    }
  }
}

TEST(Link, OneWayTrafficWithLossIsRepairedToo) {
  const std::uint64_t seed = test_seed(7);
  SCOPED_TRACE(seed_trace(seed));
  Link link({.loss = 0.01}, seed, 20'000, 0);
  ASSERT_TRUE(link.run(10 * kSecond));
  link.expect_all_delivered_once();
  EXPECT_LE(static_cast<double>(link.a().send.counters().resent),
            1.2 * static_cast<double>(link.lost_segments()) + 2);
}

TEST(Link, ALostTailIsBackWithinAProbeTimeoutAndTwoRoundTrips) {
  for (const std::uint64_t lost : {1, 2, 10, 60}) {
    SCOPED_TRACE(lost);
    LinkSettings settings;
    settings.lost_from = 500 - lost;
    Link whole({}, 1, 500, 0);
    ASSERT_TRUE(whole.run(kSecond));
    Link link(settings, 1, 500, 0);
    ASSERT_TRUE(link.run(kSecond));
    link.expect_all_delivered_once();
    EXPECT_EQ(link.a().send.counters().resent, lost);
    EXPECT_LE(link.now() - whole.now(), 200 * kMicrosecond + 8 * 25 * kMicrosecond + 72'000);
  }
}

TEST(Link, EverythingAtOnceIsStillDeliveredOnce) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::uint64_t seed = test_seed(1'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    Link link({.loss = 0.02, .duplication = 0.02, .reordering = 0.1}, seed, 3'000, 2'000);
    ASSERT_TRUE(link.run(30 * kSecond));
    link.expect_all_delivered_once();
  }
}

TEST(Link, DeliveryGoesOnAcrossTheEndOf32BitSequences) {
  const std::uint64_t seed = test_seed(5);
  SCOPED_TRACE(seed_trace(seed));
  Link link({.loss = 0.02, .duplication = 0.02, .reordering = 0.02}, seed, 3'000, 3'000, {},
            (1ULL << 32) - 1'500);
  ASSERT_TRUE(link.run(30 * kSecond));
  link.expect_all_delivered_once();
}

TEST(Link, ThirtyPercentLossCompletes) {
  for (std::uint64_t round = 0; round < 10; ++round) {
    const std::uint64_t seed = test_seed(2'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    Link link({.loss = 0.3, .reordering = 0.05}, seed, 1'000, 1'000);
    ASSERT_TRUE(link.run(60 * kSecond));
    link.expect_all_delivered_once();
  }
}

TEST(Link, ReorderingAloneIsLearnedAndCostsFewResends) {
  const std::uint64_t seed = test_seed(3);
  SCOPED_TRACE(seed_trace(seed));
  Link link({.reordering = 0.3, .jitter = 4 * kMicrosecond}, seed, 20'000, 0);
  ASSERT_TRUE(link.run(kSecond));
  link.expect_all_delivered_once();
  EXPECT_LE(link.a().send.counters().resent, 20U);
}

TEST(Link, ASmallBudgetWithLossNeverStallsForGood) {
  for (std::uint64_t round = 0; round < 10; ++round) {
    const std::uint64_t seed = test_seed(4'000 + round);
    SCOPED_TRACE(seed_trace(seed));
    const CreditSettings credit{.budget_bytes = 4 * 1500, .segment_bytes = 1500};
    Link link({.loss = 0.1}, seed, 500, 300, credit);
    ASSERT_TRUE(link.run(60 * kSecond));
    link.expect_all_delivered_once();
  }
}

}  // namespace
}  // namespace gradcube::protocol
