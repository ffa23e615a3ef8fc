// A channel against segments that fit and segments that do not, and what it sends. No engine, no
// packets.

#include "dataplane/engine/messages/mail_channel.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/dataplane/engine/mail_channel_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

TEST_F(MailChannelTest, HasAFlowForEachPath) {
  ASSERT_EQ(channel_->flows().size(), 2u);
  EXPECT_NE(flow(0).planned[0].level, flow(1).planned[0].level);
  EXPECT_EQ(room_.channel_to(4), nullptr) << "there is no such server";
  EXPECT_EQ(room_.channel_to(3), channel_);
}

TEST_F(MailChannelTest, TakesNothingWithoutAReceive) {
  EXPECT_FALSE(fits(segment(MailKind::data, 0, 0, true, 0)));
  EXPECT_FALSE(fits(segment(MailKind::refusal, 0, 0, false, kRefusalBytes)));
  submit(shared::Direction::send, 100);
  EXPECT_FALSE(fits(segment(MailKind::data, 0, 0, true, 100))) << "it is a send";
  const std::uint32_t receive = this->receive(300);
  EXPECT_TRUE(fits(segment(MailKind::data, receive, 0, false, kSegment)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive + 1, 0, false, kSegment)));
  EXPECT_FALSE(fits(segment(static_cast<MailKind>(3), receive, 0, false, kSegment)));
  const std::uint32_t other = submit(shared::Direction::receive, 300, 7, 2);
  EXPECT_FALSE(fits(segment(MailKind::data, other, 0, false, kSegment))) << "of another server";
  EXPECT_FALSE(fits(segment(static_cast<MailKind>(255), receive, 0, false, 0)));
}

TEST_F(MailChannelTest, TakesNoSegmentBeyondItsBufferOrOfAWrongLength) {
  const std::uint32_t receive = this->receive(300);
  EXPECT_TRUE(fits(segment(MailKind::data, receive, 1, false, kSegment)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 2, false, kSegment)));
  EXPECT_TRUE(fits(segment(MailKind::data, receive, 2, true, 44)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 2, true, 45)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 3, true, 0)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, UINT32_MAX, true, 0)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 0, false, kSegment - 1)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 0, false, kSegment + 1)));
  Contribution odd = segment(MailKind::data, receive, 0, false, kSegment);
  odd.signature.root = 2;
  EXPECT_FALSE(fits(odd));
  arrive(segment(MailKind::data, receive, 1, true, 10));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 1, true, 10))) << "it has an end already";
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 2, false, 44)));
  EXPECT_FALSE(fits(segment(MailKind::refusal, receive, 0, false, kRefusalBytes)));
  arrive(segment(MailKind::data, receive, 0, false, kSegment), 1);
  EXPECT_EQ(completion(0).code, 0);
  EXPECT_EQ(completion(0).bytes, kSegment + 10u);
  EXPECT_EQ(session_.base()[shared::kHeapOffset + kSegment + 9], 9);
  EXPECT_EQ(session_.base()[shared::kHeapOffset + kSegment + 10], 0);
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 0, false, kSegment))) << "it has ended";
}

TEST_F(MailChannelTest, TakesWantsOverTheFirstPathAloneAndOnlySoMany) {
  EXPECT_TRUE(fits(want(0, 0, 1, 10)));
  EXPECT_FALSE(fits(want(0, 0, 1, 10), 1));
  EXPECT_FALSE(fits(want(1, 0, 1, 10)));
  EXPECT_FALSE(fits(want(0, 1, 1, 10)));
  Contribution longer = want(0, 0, 1, 10);
  longer.bytes += 1;
  EXPECT_FALSE(fits(longer));
  Contribution unnumbered = want(0, 0, 1, 10);
  unnumbered.signature.collective = Session::kMaxInFlight;
  EXPECT_FALSE(fits(unnumbered));
  for (unsigned i = 0; i < Session::kMaxInFlight; ++i) {
    channel_->add_want({i, i, {0, 0, 99}, 10}, i + 1);
  }
  EXPECT_FALSE(fits(want(0, 0, 1, 10)));
}

TEST_F(MailChannelTest, RefusesAMessageThatIsTooLong) {
  const std::uint32_t receive = submit(shared::Direction::receive, 50);
  Contribution refusal = segment(MailKind::refusal, receive, 0, false, kRefusalBytes);
  protocol::store_little(payload_.data(), std::uint64_t{60});
  EXPECT_FALSE(fits(refusal)) << "nobody knows of the receive";
  // The want goes before the word that a message is not sent.
  submit(shared::Direction::send, 200, 8);
  arrive(want(0, 0, 8, 199));
  EXPECT_EQ(channel_->backlog(flow()), 2);
  const auto first = channel_->next_segment(flow());
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->signature.kind, static_cast<std::uint8_t>(MailKind::want));
  flow().send.record_send(0);
  refusal = segment(MailKind::refusal, receive, 0, false, kRefusalBytes);
  protocol::store_little(payload_.data(), std::uint64_t{50});
  EXPECT_FALSE(fits(refusal)) << "it has room for the message";
  protocol::store_little(payload_.data(), std::uint64_t{60});
  arrive(refusal);
  EXPECT_EQ(completion(0).code, GRADCUBE_EMISMATCH);
  EXPECT_EQ(completion(0).bytes, 60u);
  const auto second = channel_->next_segment(flow());
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->signature.kind, static_cast<std::uint8_t>(MailKind::refusal));
  EXPECT_EQ(second->signature.collective, 40u);
  EXPECT_EQ(second->bytes, kRefusalBytes);
  EXPECT_EQ(protocol::load_little<std::uint64_t>(second->payload), 200u);
  EXPECT_FALSE(channel_->next_segment(flow(1)).has_value());
}

TEST_F(MailChannelTest, SharesALargeMessageAmongThePaths) {
  submit(shared::Direction::send, shared::kLargeMessage);
  channel_->add_want({0, 40, {0, 0, 7}, shared::kLargeMessage}, 1);
  for (std::uint32_t i = 0; i < 6; ++i) {
    Flow& next = flow(i % 3 == 0 ? 1 : 0);
    EXPECT_EQ(channel_->next_segment(next)->signature.count, i);
    next.send.record_send(0);
  }
  // Each path asks for its half: of 512 segments 506 are left.
  EXPECT_EQ(channel_->backlog(flow(0)), 253);
}

TEST_F(MailChannelTest, EndsASendWhenEachPathHasItsLastAcknowledgement) {
  submit(shared::Direction::send, shared::kLargeMessage);
  channel_->add_want({0, 40, {0, 0, 7}, shared::kLargeMessage}, 1);
  std::uint32_t sent[2] = {};
  for (unsigned turn = 0; channel_->next_segment(flow(turn % 2)).has_value(); ++turn) {
    Flow& next = flow(turn % 2);
    next.send.record_send(0);
    ++sent[turn % 2];
    // All but the last of each path.
    if (next.send.in_flight() == 64 && sent[turn % 2] < 200) {
      next.send.on_acknowledgement(sent[turn % 2], 0, 128, 0, 1);
    }
    channel_->on_acknowledged(next);
  }
  EXPECT_EQ(sent[0] + sent[1], shared::kLargeMessage / kSegment);
  flow(0).send.on_acknowledgement(sent[0], 0, 128, 0, 2);
  channel_->on_acknowledged(flow(0));
  room_.publish_ends();
  EXPECT_EQ(session_->region().header().completion_tail.load(), 0u);
  flow(1).send.on_acknowledgement(sent[1], 0, 128, 0, 2);
  channel_->on_acknowledged(flow(1));
  EXPECT_EQ(completion(0).code, 0);
}

TEST_F(MailChannelTest, NamesItsSegmentsForEver) {
  submit(shared::Direction::send, 60'000);  // less than kLargeMessage
  channel_->add_want({0, 40, {0, 0, 7}, 60'000}, 1);
  EXPECT_FALSE(channel_->next_segment(flow(1)).has_value());
  ASSERT_TRUE(channel_->next_segment(flow(0)).has_value());
  const auto again = channel_->next_segment(flow(0));
  EXPECT_EQ(again->signature.count, 0u) << "as long as it is not sent, it is the next one";
  flow(0).send.record_send(0);
  EXPECT_EQ(channel_->next_segment(flow(0))->signature.count, 1u);
  EXPECT_EQ(channel_->sent_segment(flow(0), 0).signature.count, 0u);
  EXPECT_EQ(channel_->sent_segment(flow(0), 0).payload, session_.base() + shared::kHeapOffset);
}

TEST_F(MailChannelTest, BeginsAFewOfThoseThatAreSubmittedAtATime) {
  for (unsigned i = 0; i < Mailroom::kBegunAtOnce + 5; ++i)
    take(shared::Direction::receive, 8, i, 3);
  EXPECT_EQ(channel_->backlog(flow()), 0);
  EXPECT_EQ(room_.work(), Mailroom::kBegunAtOnce);
  EXPECT_EQ(channel_->backlog(flow()), Mailroom::kBegunAtOnce);
  EXPECT_EQ(room_.work(), 5u);
  EXPECT_EQ(room_.work(), 0u);
}

// Whatever the number of paths that each takes.
TEST_F(MailChannelTest, GivesEachMessageItsTurn) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    submit(shared::Direction::send, i == 3 ? kSegment : 3 * kSegment, i, 3, 1 + i % 2);
    channel_->add_want({i, i, {0, 0, i}, 1000}, i + 1);
  }
  const auto next = [&](unsigned path) -> std::uint64_t {
    const auto segment = channel_->next_segment(flow(path));
    if (!segment.has_value()) return UINT64_MAX;
    flow(path).send.record_send(0);
    return segment->signature.collective;
  };
  std::vector<std::uint64_t> turns;
  for (unsigned i = 0; i < 8; ++i) turns.push_back(next(0));
  EXPECT_EQ(turns, (std::vector<std::uint64_t>{0, 1, 2, 3, 0, 1, 2, 0}));
  EXPECT_EQ(next(1), 1u) << "the others take one path";
  EXPECT_EQ(next(1), UINT64_MAX);
  EXPECT_EQ(channel_->backlog(flow(0)), 1);
  EXPECT_EQ(next(0), 2u);
  EXPECT_EQ(channel_->backlog(flow(0)), 0);
}

// What no honest sender sends: an answer to a want that it cannot know.
TEST_F(MailChannelTest, TakesNoDataBeforeItHasAskedForIt) {
  const std::uint32_t receive = submit(shared::Direction::receive, 300);
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 0, true, 10)));
  ASSERT_TRUE(channel_->next_segment(flow()).has_value());
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 0, true, 10))) << "chosen, and not sent";
  flow().send.record_send(0);
  EXPECT_TRUE(fits(segment(MailKind::data, receive, 0, true, 10)));
}

// Nor a segment twice under different sequences, or one behind the last: a message is whole where
// each of its bytes has come.
TEST_F(MailChannelTest, CountsEachSegmentOnce) {
  // Buffers that lie side by side in the trainer's memory.
  const std::uint32_t before = receive(5 * kSegment, 1);
  offset_ += 5 * kSegment;
  const std::uint32_t receive = this->receive(5 * kSegment);
  offset_ += 5 * kSegment;
  const std::uint32_t behind = this->receive(5 * kSegment, 3);
  offset_ -= 5 * kSegment;
  for (const std::uint32_t other : {before, behind}) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      arrive(segment(MailKind::data, other, i, false, kSegment));
    }
  }
  arrive(segment(MailKind::data, receive, 1, false, kSegment));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 1, false, kSegment), 1));
  arrive(segment(MailKind::data, receive, 3, false, kSegment), 1);
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 2, true, kSegment))) << "4 have come already";
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 3, true, kSegment)));
  arrive(segment(MailKind::data, receive, 4, true, kSegment));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 4, false, kSegment)));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 3, false, kSegment)));
  arrive(segment(MailKind::data, receive, 0, false, kSegment));
  room_.publish_ends();
  EXPECT_EQ(session_->region().header().completion_tail.load(), 0u) << "segment 2 is missing";
  arrive(segment(MailKind::data, receive, 2, false, kSegment));
  EXPECT_EQ(completion(0).code, 0);
  EXPECT_EQ(completion(0).bytes, 5 * kSegment);
  // What the next one at the same place gets is fresh.
  this->receive(5 * kSegment, 4);
  const std::uint32_t next = receive;  // it has the number of the one that has ended
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(fits(segment(MailKind::data, next, i, false, kSegment)));
  }
}

TEST_F(MailChannelTest, CountsWhatWaitsIsUnderWayAndHasEnded) {
  const auto counts = [&] {
    const MailTable::Counts now = session_->mail_counts(0);
    return std::vector{now.waiting, now.begun, now.done};
  };
  using Counts = std::vector<std::uint64_t>;
  const std::uint32_t receive = this->receive(2 * kSegment);
  const std::uint32_t send = submit(shared::Direction::send, kSegment);
  EXPECT_EQ(counts(), (Counts{2, 0, 0}));
  arrive(segment(MailKind::data, receive, 0, false, kSegment));
  EXPECT_EQ(counts(), (Counts{1, 1, 0}));
  channel_->add_want({1, 40, {0, 0, 7}, kSegment}, 2);
  EXPECT_EQ(counts(), (Counts{0, 2, 0}));
  EXPECT_EQ(session_->unanswered(), 0u);
  ASSERT_TRUE(channel_->next_segment(flow()).has_value());
  flow().send.record_send(0);
  EXPECT_EQ(session_->unanswered(), 1u) << "send " << send << " was sent as a whole";
  flow().send.on_acknowledgement(2, 0, 16, 0, 1);
  channel_->on_acknowledged(flow());
  EXPECT_EQ(session_->unanswered(), 0u);
  arrive(segment(MailKind::data, receive, 1, true, kSegment));
  room_.publish_ends();
  EXPECT_EQ(counts(), (Counts{0, 0, 2}));
  submit(shared::Direction::send, kSegment, 9);
  session_->fail_mail(GRADCUBE_EPEER, 0);
  EXPECT_EQ(counts(), (Counts{0, 0, 3}));
}

// The engine asks pending() before a frame leaves.
TEST_F(MailChannelTest, FindsMemoryThatCannotBeReadBeforeItIsSent) {
  GuardedMemory::install_handler();
  const std::uint64_t page = 4096;
  offset_ = page - shared::kHeapOffset % page;
  submit(shared::Direction::send, 3 * kSegment);
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  std::uint8_t* place = session_.base() + shared::kHeapOffset + offset_ + page;
  ASSERT_EQ(mmap(place, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0), place);
  close(empty);
  offset_ += page - kSegment - kSegment / 2;
  submit(shared::Direction::send, 3 * kSegment, 8);
  channel_->add_want({0, 40, {0, 0, 7}, 3 * kSegment}, 1);
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_TRUE(channel_->next_segment(flow()).has_value());
    flow().send.record_send(0);
    EXPECT_FALSE(GuardedMemory::pending());
  }
  channel_->add_want({1, 41, {0, 0, 8}, 3 * kSegment}, 2);
  ASSERT_TRUE(channel_->next_segment(flow()).has_value());
  flow().send.record_send(0);
  EXPECT_FALSE(GuardedMemory::pending());
  ASSERT_TRUE(channel_->next_segment(flow()).has_value());
  EXPECT_TRUE(GuardedMemory::pending()) << "the second half of the segment lies there";
  EXPECT_TRUE(session_->region().faulted());
  GuardedMemory::settle(GuardedMemory::faults());
}

TEST_F(MailChannelTest, LetsAShortCopyPassALongOne) {
  const std::uint64_t large = 6 * Mailroom::kCopiedInTurn;
  submit(shared::Direction::send, large, 1, 0);
  submit(shared::Direction::send, 10, 2, 0);
  submit(shared::Direction::receive, large, 1, 0);
  submit(shared::Direction::receive, 10, 2, 0);
  while (room_.work() != 0) continue;
  EXPECT_EQ(completion(1).request, 2u);
  EXPECT_EQ(completion(3).request, 1u);
  EXPECT_EQ(completion(3).bytes, large);
}

}  // namespace
}  // namespace gradcube::dataplane
