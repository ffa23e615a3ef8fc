// What the way between nodes does to messages: nothing as a rule, and what it is told to.

#include "dataplane/daemon/message_queue.h"

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

constexpr std::uint64_t kSeed = 20240607;
constexpr Instant kStart = seconds(100);

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
  MessageQueue queue(kSeed);
  EXPECT_FALSE(queue.take(kStart).has_value());
  send_all(queue, 50, kStart);
  EXPECT_EQ(take_all(queue, kStart), one_to(50));
  EXPECT_FALSE(queue.take(kStart + seconds(1)).has_value());
}

TEST(MessageQueue, KeepsTheOrderOfMessagesThatWereSentAtDifferentTimes) {
  MessageQueue queue(kSeed);
  queue.send(numbered(1), kStart);
  queue.send(numbered(2), kStart + milliseconds(1));
  queue.send(numbered(3), kStart + milliseconds(1));
  EXPECT_EQ(take_all(queue, kStart), Numbers{1});
  EXPECT_EQ(take_all(queue, kStart + milliseconds(1)), (Numbers{2, 3}));
}

TEST(MessageQueue, DeliversAMessageAsItWasSent) {
  MessageQueue queue(kSeed);
  control::JobMessage sent;
  sent.from = {2, 7, 1};
  sent.to = {3, 9, 0};
  sent.name = "mnist";
  sent.body = control::Leave{"it left", true};
  queue.send({2, 3, sent}, kStart);
  const auto message = queue.take(kStart);
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
  MessageQueue queue(kSeed);
  queue.set_faults({.loss = 0.25});
  send_all(queue, 4'000, kStart);
  const Numbers arrived = take_all(queue, kStart);
  EXPECT_GT(arrived.size(), 2'800u) << "seed " << kSeed;
  EXPECT_LT(arrived.size(), 3'200u) << "seed " << kSeed;
  EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end())) << "loss does not reorder";
  queue.set_faults({.loss = 1});
  send_all(queue, 100, kStart);
  EXPECT_EQ(take_all(queue, kStart), Numbers{});
}

TEST(MessageQueue, DoublesTheShareThatItIsTold) {
  MessageQueue queue(kSeed);
  queue.set_faults({.duplicate = 0.25});
  send_all(queue, 4'000, kStart);
  const Numbers arrived = take_all(queue, kStart);
  EXPECT_GT(arrived.size(), 4'800u) << "seed " << kSeed;
  EXPECT_LT(arrived.size(), 5'200u) << "seed " << kSeed;
  EXPECT_EQ(std::set<std::uint64_t>(arrived.begin(), arrived.end()).size(), 4'000u);
  queue.set_faults({.duplicate = 1});
  queue.send(numbered(7), kStart);
  EXPECT_EQ(take_all(queue, kStart), (Numbers{7, 7}));
}

TEST(MessageQueue, DelaysUpToALimitAndSoReorders) {
  MessageQueue queue(kSeed);
  queue.set_faults({.longest_delay = milliseconds(10)});
  send_all(queue, 1'000, kStart);
  const std::size_t early = take_all(queue, kStart + milliseconds(5)).size();
  EXPECT_GT(early, 300u) << "seed " << kSeed;
  EXPECT_LT(early, 700u) << "seed " << kSeed;
  Numbers late = take_all(queue, kStart + milliseconds(10));
  EXPECT_EQ(early + late.size(), 1'000u) << "a message took longer than the limit";
  EXPECT_FALSE(std::is_sorted(late.begin(), late.end())) << "seed " << kSeed;
}

TEST(MessageQueue, TellsWhenTheNextMessageIsDue) {
  MessageQueue queue(kSeed);
  EXPECT_FALSE(queue.next().has_value());
  queue.set_faults({.longest_delay = milliseconds(10)});
  send_all(queue, 20, kStart);
  unsigned arrived = 0;
  while (const auto due = queue.next()) {
    EXPECT_GE(*due, kStart);
    EXPECT_LT(*due, kStart + milliseconds(10));
    EXPECT_FALSE(queue.take(*due - Instant(1)).has_value()) << "it came before its time";
    ASSERT_TRUE(queue.take(*due).has_value());
    ++arrived;
  }
  EXPECT_EQ(arrived, 20u);
}

TEST(MessageQueue, IsCutOneWayUntilItIsMended) {
  MessageQueue queue(kSeed);
  queue.cut(0, 1);
  queue.send(numbered(1, 0, 1), kStart);
  queue.send(numbered(2, 1, 0), kStart);
  queue.send(numbered(3, 0, 2), kStart);
  queue.send(numbered(4, 2, 1), kStart);
  EXPECT_EQ(take_all(queue, kStart), (Numbers{2, 3, 4}));
  queue.mend();
  queue.send(numbered(5, 0, 1), kStart);
  EXPECT_EQ(take_all(queue, kStart), Numbers{5}) << "what a cut took does not come back";
}

TEST(MessageQueue, DeliversWhatWasUnderWayWhenItWasCut) {
  MessageQueue queue(kSeed);
  queue.send(numbered(1, 0, 1), kStart);
  queue.cut(0, 1);
  queue.send(numbered(2, 0, 1), kStart);
  EXPECT_EQ(take_all(queue, kStart), Numbers{1});
}

TEST(MessageQueue, KeepsAStoppedServersMessagesWhileOthersPass) {
  MessageQueue queue(kSeed);
  queue.send(numbered(1, 0, 1), kStart);
  queue.stop(1);
  queue.send(numbered(2, 2, 1), kStart);
  EXPECT_FALSE(queue.next().has_value()) << "nobody can be given a message now";
  queue.send(numbered(3, 1, 2), kStart + milliseconds(1));
  EXPECT_EQ(queue.next(), kStart + milliseconds(1));
  EXPECT_EQ(take_all(queue, kStart + seconds(1)), Numbers{3}) << "sent before it stopped";
  queue.go_on(1);
  EXPECT_EQ(queue.next(), kStart);
  EXPECT_EQ(take_all(queue, kStart + seconds(2)), (Numbers{1, 2}));
}

// What arrives, in order, of messages with all faults at once.
Numbers arrivals(std::uint64_t seed) {
  MessageQueue queue(seed);
  queue.set_faults({.loss = 0.3, .duplicate = 0.3, .longest_delay = milliseconds(10)});
  send_all(queue, 200, kStart);
  return take_all(queue, kStart + seconds(1));
}

TEST(MessageQueue, HasTheSameFaultsForTheSameSeed) {
  EXPECT_EQ(arrivals(kSeed), arrivals(kSeed));
  EXPECT_NE(arrivals(kSeed), arrivals(kSeed + 1));
}

}  // namespace
}  // namespace gradcube::dataplane
