// Both halves of a flow over a link that delays, loses, doubles and reorders, on a virtual clock.
#ifndef GRADCUBE_TESTS_UNIT_PROTOCOL_LINK_H_
#define GRADCUBE_TESTS_UNIT_PROTOCOL_LINK_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <queue>
#include <random>
#include <vector>

#include "protocol/credit.h"
#include "protocol/receive_window.h"
#include "protocol/send_window.h"
#include "tests/unit/protocol/arrive.h"

namespace gradcube::protocol {

inline constexpr Nanoseconds kSecond = 1'000 * kMillisecond;

struct LinkSettings {
  Nanoseconds delay = 10 * kMicrosecond;
  Nanoseconds per_segment = 1'200;  // 1500 bytes at 10 Gbit/s
  double loss = 0;                  // a damaged frame is a lost one: its CRC is wrong
  double duplication = 0;
  double reordering = 0;
  Nanoseconds jitter = 50 * kMicrosecond;  // of a frame that is reordered
  std::uint64_t lost_from = ~0ULL;  // first transmissions from this sequence on are lost (a tail)
  Nanoseconds reading = 0;          // from the arrival of a segment until it is consumed
  bool awaits_consumption = false;  // both ends end when all that they sent is consumed
  unsigned lost_news = 0;           // so many of the frames that tell that all is consumed are lost
};

struct Frame {
  bool is_segment = false;
  bool is_probe = false;
  std::uint8_t backlog = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;
  std::uint64_t selective = 0;
  std::uint8_t credit = 0;
  std::uint8_t held = 0;
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
  PortCredit port;
  CreditPool pool;
  CreditPool::Handle flow = 0;
  std::uint64_t end = 0;       // its last segment's sequence + 1
  std::vector<unsigned> uses;  // how often each of the other end's segments was delivered
  Nanoseconds line_free = 0;
  struct Read {
    Nanoseconds at;
    std::uint64_t prefix;
  };
  std::deque<Read> reads;    // to come: all below the prefix will then be consumed
  std::uint64_t frames = 0;  // that it sent without a segment

  Party(const RecoverySettings& settings, const CreditSettings& credit, std::uint64_t sends,
        std::uint64_t receives, std::uint64_t first)
      : send(settings, SendWindow::kWindow, first),
        receive(ReceiveWindow::kWindow, first),
        port(credit),
        pool(port, 0),
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

  // Runs until everything is acknowledged, or consumed, at both ends; false if time ran out.
  bool run(Nanoseconds until) {
    while (!done()) {
      Nanoseconds next = events_.empty() ? kNever : events_.top().at;
      for (int party : {0, 1}) next = std::min(next, wake_of(parties_[party]));
      now_ = std::max(now_, next);
      if (now_ > until) return false;
      while (!events_.empty() && events_.top().at <= now_) {
        const Event event = events_.top();
        events_.pop();
        take(parties_[event.to], parties_[1 - event.to], event.frame);
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
    const bool ready = must_ask(party) ||
                       (party.send.may_send() && party.send.next() < party.end) ||
                       party.send.next_lost().has_value();
    return std::min({party.send.deadline(), party.receive.acknowledgement_deadline(),
                     ready ? party.line_free : kNever,
                     party.reads.empty() ? kNever : party.reads.front().at});
  }

  static bool must_ask(const Party& party) {
    return party.send.next() < party.end && party.send.must_ask();
  }

  bool done() const {
    return std::all_of(parties_.begin(), parties_.end(), [this](const Party& party) {
      return party.end ==
             (settings_.awaits_consumption ? party.send.consumed() : party.send.cumulative());
    });
  }

  void take(Party& party, const Party& other, const Frame& frame) {
    const AckResult result = party.send.on_acknowledgement(frame.acknowledged, frame.selective,
                                                           frame.credit, frame.held, now_);
    EXPECT_NE(result.status, AckStatus::refused);
    EXPECT_LE(party.send.consumed(), other.receive.consumed());
    if (frame.is_probe) party.receive.on_probe();
    if (frame.is_segment) {
      const std::uint64_t sequence = party.receive.expand(frame.sequence);
      const Arrival arrival = arrive(party.receive, sequence, now_);
      EXPECT_NE(arrival, Arrival::outside);
      if (arrival == Arrival::fresh) ++party.uses.at(sequence - first_);
      party.reads.push_back({now_ + settings_.reading, party.receive.cumulative()});
    }
    party.pool.on_frame(party.flow, party.receive.expand(frame.sequence) + frame.backlog);
  }

  void pump(int index) {
    Party& party = parties_[index];
    if (party.send.deadline() <= now_) party.send.on_timer(now_);
    for (; !party.reads.empty() && party.reads.front().at <= now_; party.reads.pop_front()) {
      party.pool.set_consumed(party.flow, party.reads.front().prefix, now_);
    }
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
    if (settings_.awaits_consumption && party.send.next() == party.end) {
      party.send.await_consumed(now_);
    }
    if (party.send.probe_owed()) {
      party.send.record_probe();
      transmit(index, false, party.send.next(), true);
    }
    if (party.receive.acknowledgement_owed(now_) || must_ask(party)) {
      transmit(index, false, party.send.next());
    }
  }

  bool happens(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }

  void transmit(int from, bool is_segment, std::uint64_t sequence, bool is_probe = false) {
    Party& party = parties_[from];
    // What is sent again asks for nothing.
    const bool asks = !is_segment || sequence + 1 == party.send.next();
    const std::uint64_t backlog = asks ? std::min<std::uint64_t>(255, party.end - sequence) : 0;
    party.send.record_ask(sequence + backlog, now_);
    const Frame frame{.is_segment = is_segment,
                      .is_probe = is_probe,
                      .backlog = static_cast<std::uint8_t>(backlog),
                      .sequence = static_cast<std::uint32_t>(sequence),
                      .acknowledged = party.receive.acknowledged(),
                      .selective = party.receive.selective(),
                      .credit = party.receive.credit(),
                      .held = party.receive.held()};
    party.receive.acknowledged_now();
    party.frames += is_segment ? 0 : 1;
    Nanoseconds at = std::max(party.line_free, now_);
    if (is_segment) at = party.line_free = at + settings_.per_segment;
    at += settings_.delay;
    bool lost = happens(settings_.loss);
    if (is_segment && from == 0 && sequence >= settings_.lost_from && sequence >= tail_seen_) {
      tail_seen_ = sequence + 1;
      lost = true;
    }
    if (from == 1 && party.receive.consumed() == a().end && news_ < settings_.lost_news) {
      ++news_;
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
  unsigned news_ = 0;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_TESTS_UNIT_PROTOCOL_LINK_H_
