// What the way between nodes does to messages: nothing as a rule, and what it is told to.

#include "tests/support/message_queue.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace gradcube::dataplane {
namespace {

using control::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Numbers = std::vector<std::uint64_t>;

constexpr std::uint64_t kQueueSeed = 20240607;
constexpr Instant kQueueStart = seconds(100);

// A message that is told from others by its number.
control::NodeMessage numbered(std::uint64_t number, bcube::ServerId from = 0,
                              bcube::ServerId to = 1) {
  return {from, to, control::Greeting{number, false}};
}

std::uint64_t number_of(const control::NodeMessage& message) {
  return std::get<control::Greeting>(message.body).incarnation;
}

// All that are due, in the order in which they come.
Numbers take_all(MessageQueue& queue, Instant now) {
  Numbers numbers;
  while (const auto message = queue.take(now)) numbers.push_back(number_of(*message));
  return numbers;
}

Numbers one_to(std::uint64_t last) {
  Numbers numbers;
  for (std::uint64_t number = 1; number <= last; ++number) numbers.push_back(number);
  return numbers;
}

void send_all(MessageQueue& queue, std::uint64_t last, Instant now) {
  for (const std::uint64_t number : one_to(last)) queue.send(numbered(number), now);
}

TEST(MessageQueue, DeliversAtOnceAndInOrder) {
  MessageQueue queue(kQueueSeed);
  EXPECT_FALSE(queue.take(kQueueStart).has_value());
  send_all(queue, 50, kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart), one_to(50));
  EXPECT_FALSE(queue.take(kQueueStart + seconds(1)).has_value());
}

TEST(MessageQueue, KeepsTheOrderOfMessagesThatWereSentAtDifferentTimes) {
  MessageQueue queue(kQueueSeed);
  queue.send(numbered(1), kQueueStart);
  queue.send(numbered(2), kQueueStart + milliseconds(1));
  queue.send(numbered(3), kQueueStart + milliseconds(1));
  EXPECT_EQ(take_all(queue, kQueueStart), Numbers{1});
  EXPECT_EQ(take_all(queue, kQueueStart + milliseconds(1)), (Numbers{2, 3}));
}

TEST(MessageQueue, DeliversAMessageAsItWasSent) {
  MessageQueue queue(kQueueSeed);
  control::JobMessage sent;
  sent.from = {2, 7, 1};
  sent.to = {3, 9, 0};
  sent.name = "mnist";
  sent.body = control::Leave{"it left", true};
  queue.send({2, 3, sent}, kQueueStart);
  const auto message = queue.take(kQueueStart);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->from, 2u);
  EXPECT_EQ(message->to, 3u);
  const auto& got = std::get<control::JobMessage>(message->body);
  EXPECT_EQ(got.from, sent.from);
  EXPECT_EQ(got.to, sent.to);
  EXPECT_EQ(got.name, "mnist");
  EXPECT_EQ(std::get<control::Leave>(got.body).how, "it left");
}

TEST(MessageQueue, LosesTheShareThatItIsTold) {
  MessageQueue queue(kQueueSeed);
  queue.set_faults({.loss = 0.25});
  send_all(queue, 4'000, kQueueStart);
  const Numbers arrived = take_all(queue, kQueueStart);
  EXPECT_GT(arrived.size(), 2'800u) << "seed " << kQueueSeed;
  EXPECT_LT(arrived.size(), 3'200u) << "seed " << kQueueSeed;
  EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end())) << "loss does not reorder";
  queue.set_faults({.loss = 1});
  send_all(queue, 100, kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart), Numbers{});
}

TEST(MessageQueue, DoublesTheShareThatItIsTold) {
  MessageQueue queue(kQueueSeed);
  queue.set_faults({.duplicate = 0.25});
  send_all(queue, 4'000, kQueueStart);
  const Numbers arrived = take_all(queue, kQueueStart);
  EXPECT_GT(arrived.size(), 4'800u) << "seed " << kQueueSeed;
  EXPECT_LT(arrived.size(), 5'200u) << "seed " << kQueueSeed;
  EXPECT_EQ(std::set<std::uint64_t>(arrived.begin(), arrived.end()).size(), 4'000u);
  queue.set_faults({.duplicate = 1});
  queue.send(numbered(7), kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart), (Numbers{7, 7}));
}

TEST(MessageQueue, DelaysUpToALimitAndSoReorders) {
  MessageQueue queue(kQueueSeed);
  queue.set_faults({.longest_delay = milliseconds(10)});
  send_all(queue, 1'000, kQueueStart);
  const std::size_t early = take_all(queue, kQueueStart + milliseconds(5)).size();
  EXPECT_GT(early, 300u) << "seed " << kQueueSeed;
  EXPECT_LT(early, 700u) << "seed " << kQueueSeed;
  Numbers late = take_all(queue, kQueueStart + milliseconds(10));
  EXPECT_EQ(early + late.size(), 1'000u) << "a message took longer than the limit";
  EXPECT_FALSE(std::is_sorted(late.begin(), late.end())) << "seed " << kQueueSeed;
}

TEST(MessageQueue, TellsWhenTheNextMessageIsDue) {
  MessageQueue queue(kQueueSeed);
  EXPECT_FALSE(queue.next().has_value());
  queue.set_faults({.longest_delay = milliseconds(10)});
  send_all(queue, 20, kQueueStart);
  unsigned arrived = 0;
  while (const auto due = queue.next()) {
    EXPECT_GE(*due, kQueueStart);
    EXPECT_LT(*due, kQueueStart + milliseconds(10));
    EXPECT_FALSE(queue.take(*due - Instant(1)).has_value()) << "it came before its time";
    ASSERT_TRUE(queue.take(*due).has_value());
    ++arrived;
  }
  EXPECT_EQ(arrived, 20u);
}

TEST(MessageQueue, IsCutOneWayUntilItIsMended) {
  MessageQueue queue(kQueueSeed);
  queue.cut(0, 1);
  queue.send(numbered(1, 0, 1), kQueueStart);
  queue.send(numbered(2, 1, 0), kQueueStart);
  queue.send(numbered(3, 0, 2), kQueueStart);
  queue.send(numbered(4, 2, 1), kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart), (Numbers{2, 3, 4}));
  queue.mend();
  queue.send(numbered(5, 0, 1), kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart), Numbers{5}) << "what a cut took does not come back";
}

TEST(MessageQueue, DeliversWhatWasUnderWayWhenItWasCut) {
  MessageQueue queue(kQueueSeed);
  queue.send(numbered(1, 0, 1), kQueueStart);
  queue.cut(0, 1);
  queue.send(numbered(2, 0, 1), kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart), Numbers{1});
}

TEST(MessageQueue, KeepsAStoppedServersMessagesWhileOthersPass) {
  MessageQueue queue(kQueueSeed);
  queue.send(numbered(1, 0, 1), kQueueStart);
  queue.stop(1);
  queue.send(numbered(2, 2, 1), kQueueStart);
  EXPECT_FALSE(queue.next().has_value()) << "nobody can be given a message now";
  queue.send(numbered(3, 1, 2), kQueueStart + milliseconds(1));
  EXPECT_EQ(queue.next(), kQueueStart + milliseconds(1));
  EXPECT_EQ(take_all(queue, kQueueStart + seconds(1)), Numbers{3}) << "sent before it stopped";
  queue.go_on(1);
  EXPECT_EQ(queue.next(), kQueueStart);
  EXPECT_EQ(take_all(queue, kQueueStart + seconds(2)), (Numbers{1, 2}));
}

// What arrives, in order, of messages with all faults at once.
Numbers arrivals(std::uint64_t seed) {
  MessageQueue queue(seed);
  queue.set_faults({.loss = 0.3, .duplicate = 0.3, .longest_delay = milliseconds(10)});
  send_all(queue, 200, kQueueStart);
  return take_all(queue, kQueueStart + seconds(1));
}

TEST(MessageQueue, HasTheSameFaultsForTheSameSeed) {
  EXPECT_EQ(arrivals(kQueueSeed), arrivals(kQueueSeed));
  EXPECT_NE(arrivals(kQueueSeed), arrivals(kQueueSeed + 1));
}

}  // namespace
}  // namespace gradcube::dataplane
