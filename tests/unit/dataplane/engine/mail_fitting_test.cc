// A channel whose messages do not fit their receives, or are withdrawn. No engine, no packets.

#include "tests/unit/dataplane/engine/mail_channel_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

TEST_F(MailChannelTest, RefusesAMessageOfAnotherTypeAndNamesBoth) {
  dtype_ = aggregation::DataType::float32;
  submit(shared::Direction::send, 40, 8);
  Contribution asked = want(0, 0, 8, 40);
  payload_[18] = static_cast<std::uint8_t>(aggregation::DataType::int32);
  arrive(asked);
  ASSERT_EQ(next_kind(), MailKind::refusal);
  EXPECT_EQ(last_.payload[8], static_cast<std::uint8_t>(aggregation::DataType::float32));
  flow().send.on_acknowledgement(1, 0, 16, 0, 1);
  channel_->on_acknowledged(flow());
  EXPECT_EQ(completion(0).code, GRADCUBE_EMISMATCH);
  EXPECT_EQ(completion(0).notice, GRADCUBE_INT32 + 1u);

  submit(shared::Direction::receive, 40);
  ASSERT_EQ(next_kind(), MailKind::want);
  EXPECT_EQ(last_.payload[18], static_cast<std::uint8_t>(aggregation::DataType::float32));
  Contribution refusal =
      segment(MailKind::refusal, last_.signature.collective, 0, false, kRefusalBytes);
  protocol::store_little(payload_.data(), std::uint64_t{40});
  for (const auto same : {aggregation::DataType::float32, aggregation::DataType::bytes}) {
    payload_[8] = static_cast<std::uint8_t>(same);
    EXPECT_FALSE(fits(refusal)) << "it fits";
  }
  payload_[8] = GRADCUBE_COMPLEX64;
  arrive(refusal);
  EXPECT_EQ(completion(1).code, GRADCUBE_EMISMATCH);
  EXPECT_EQ(completion(1).notice, GRADCUBE_COMPLEX64 + 1u);

  // On one server.
  submit(shared::Direction::send, 40, 3, 0);
  dtype_ = static_cast<aggregation::DataType>(GRADCUBE_INT16);
  submit(shared::Direction::receive, 40, 3, 0);
  EXPECT_EQ(completion(2).notice, GRADCUBE_INT16 + 1u);
  EXPECT_EQ(completion(3).notice, GRADCUBE_FLOAT32 + 1u);
  // Bytes may be anything.
  submit(shared::Direction::send, 40, 4, 0);
  dtype_ = aggregation::DataType::bytes;
  submit(shared::Direction::receive, 40, 4, 0);
  while (room_.work() != 0) continue;
  EXPECT_EQ(completion(5).code, 0);
}

// Nobody has heard of it, so nobody is told.
TEST_F(MailChannelTest, WithdrawsAReceiveThatWasNotToldAtOnce) {
  submit(shared::Direction::receive, 100, 1);
  submit(shared::Direction::receive, 100, 2);
  take(shared::Direction::receive, 100, 3, 3);  // and this one has not even begun
  withdraw(3);
  EXPECT_EQ(completion(0).request, 3u);
  withdraw(1);
  EXPECT_EQ(completion(1).request, 1u);
  EXPECT_EQ(completion(1).code, GRADCUBE_ECANCELED);
  EXPECT_EQ(next_kind(), MailKind::want);
  EXPECT_EQ(last_.signature.collective, 1u);
  EXPECT_EQ(next_kind(), MailKind{0});
}

TEST_F(MailChannelTest, WithdrawsAReceiveWhenItsSendersServerSaysSo) {
  const std::uint32_t receive = this->receive(300);
  const Contribution withdrawn = segment(MailKind::withdrawn, receive, 0, false, 0);
  EXPECT_FALSE(fits(withdrawn)) << "nobody has asked for it";
  withdraw(1);
  EXPECT_FALSE(fits(withdrawn)) << "nobody can know it";
  ASSERT_EQ(next_kind(), MailKind::withdrawal);
  EXPECT_EQ(last_.signature.collective, receive);
  EXPECT_EQ(ended(), 0u);
  withdraw(1);
  EXPECT_EQ(next_kind(), MailKind{0}) << "once is enough";
  arrive(withdrawn);
  EXPECT_EQ(completion(0).code, GRADCUBE_ECANCELED);
  EXPECT_FALSE(fits(withdrawn));
  EXPECT_FALSE(fits(segment(MailKind::data, receive, 0, true, 10)));
  withdraw(1);
  EXPECT_EQ(ended(), 1u);
}

// Its message was on its way before.
TEST_F(MailChannelTest, EndsAReceiveWellThatWasWithdrawnTooLate) {
  const std::uint32_t receive = this->receive(300);
  arrive(segment(MailKind::data, receive, 0, false, kSegment));
  withdraw(1);
  arrive(segment(MailKind::data, receive, 1, true, 10));
  EXPECT_EQ(completion(0).code, 0);
  EXPECT_EQ(completion(0).bytes, kSegment + 10u);
  EXPECT_EQ(next_kind(), MailKind{0}) << "the next one has its number";
  this->receive(300);
  arrive(segment(MailKind::data, receive, 0, false, kSegment));
  withdraw(3);
  ASSERT_EQ(next_kind(), MailKind::withdrawal);
  EXPECT_FALSE(fits(segment(MailKind::withdrawn, receive, 0, false, 0))) << "it has begun to land";
}

TEST_F(MailChannelTest, AnswersAWithdrawalOfAWantThatHasMetNothing) {
  submit(shared::Direction::send, 100, 8);
  Contribution asked = want(0, 0, 8, 100);
  arrive(asked);
  asked = want(0, 0, 9, 100);
  asked.signature.collective = 41;
  arrive(asked);
  ASSERT_EQ(next_kind(), MailKind::data);
  Contribution withdrawal = segment(MailKind::withdrawal, 40, 0, false, 0);
  EXPECT_FALSE(fits(withdrawal, 1)) << "not over the first path";
  arrive(withdrawal);
  EXPECT_EQ(next_kind(), MailKind{0}) << "it has met its send";
  withdrawal.signature.collective = 41;
  arrive(withdrawal);
  ASSERT_EQ(next_kind(), MailKind::withdrawn);
  EXPECT_EQ(last_.signature.collective, 41u);
  submit(shared::Direction::send, 100, 9);
  EXPECT_EQ(next_kind(), MailKind{0}) << "its receive has gone";
  withdrawal.signature.collective = Session::kMaxInFlight;
  EXPECT_FALSE(fits(withdrawal));
  withdrawal.signature.collective = 3;
  withdrawal.bytes = 1;
  EXPECT_FALSE(fits(withdrawal));
}

// Who asks and withdraws again and again, and takes no answer, is asked for no more; but a
// withdrawal is always heard: of a server that asks for no more than it can have in flight, none
// is lost behind the answers to the others.
TEST_F(MailChannelTest, RemembersOnlySoManyAnswers) {
  for (std::uint32_t i = 0; i < Session::kMaxInFlight; ++i) {
    Contribution asked = want(0, 0, 9, 100);
    asked.signature.collective = i;
    arrive(asked);
    arrive(segment(MailKind::withdrawal, i, 0, false, 0));
  }
  EXPECT_FALSE(fits(want(0, 0, 9, 100)));
  EXPECT_TRUE(fits(segment(MailKind::withdrawal, 0, 0, false, 0)));
  ASSERT_EQ(next_kind(), MailKind::withdrawn);
  EXPECT_TRUE(fits(want(0, 0, 9, 100)));
}

// Nor do those that begin wait for those that are withdrawn.
TEST_F(MailChannelTest, WithdrawsHoweverManyBegin) {
  const std::uint32_t tags = Mailroom::kBegunAtOnce;
  submit(shared::Direction::send, 1, tags);
  for (std::uint32_t tag = 0; tag < tags; ++tag) take(shared::Direction::send, 1, tag, 3);
  withdraw(1);
  EXPECT_EQ(completion(0).code, GRADCUBE_ECANCELED);
  EXPECT_EQ(session_->mail().fresh(), 0u);
}

TEST_F(MailChannelTest, WithdrawsASendThatHasMetNothingAndNoOther) {
  submit(shared::Direction::send, 100, 8);
  submit(shared::Direction::send, 100, 9);
  withdraw(1);
  EXPECT_EQ(completion(0).code, GRADCUBE_ECANCELED);
  EXPECT_EQ(completion(0).request, 1u);
  channel_->add_want({0, 40, {0, 0, 8}, 100}, 1);
  EXPECT_EQ(next_kind(), MailKind{0});
  channel_->add_want({1, 41, {0, 0, 9}, 100}, 2);
  withdraw(2);
  EXPECT_EQ(next_kind(), MailKind::data);
  EXPECT_EQ(ended(), 1u);
}

TEST_F(MailChannelTest, WithdrawsBetweenTrainersOfOneServer) {
  submit(shared::Direction::receive, 100, 1, 0);
  withdraw(1);
  EXPECT_EQ(completion(0).code, GRADCUBE_ECANCELED);
  submit(shared::Direction::send, 100, 1, 0);
  while (room_.work() != 0) continue;
  EXPECT_EQ(ended(), 1u) << "the receive was withdrawn";
  submit(shared::Direction::receive, 100, 1, 0);
  withdraw(4);  // too late
  while (room_.work() != 0) continue;
  EXPECT_EQ(completion(1).code, 0);
  EXPECT_EQ(completion(2).code, 0);
}

}  // namespace
}  // namespace gradcube::dataplane
