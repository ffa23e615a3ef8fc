// What a channel does of trainers that have left, of this server and of the other one.

#include <map>

#include "tests/unit/dataplane/engine/mail_channel_fixture.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

// Of server 3, trainer 0; this server has one trainer.
TEST_F(MailChannelTest, EndsWhatWaitsForATrainerThatHasLeft) {
  submit(shared::Direction::send, 10, 1);
  const std::uint32_t wants = receive(10, 2);
  room_.depart(3, 0);
  submit(shared::Direction::send, 10, 3);
  while (room_.work() != 0) continue;
  EXPECT_EQ(room_.deserters(9), (std::map<MailPeer, std::uint32_t>{{{3, 0}, 1}}));
  EXPECT_TRUE(session_->any_deserters());
  EXPECT_FALSE(fits(segment(MailKind::absence, wants, 0, false, 1)));
  EXPECT_FALSE(fits(segment(MailKind::absence, 0, 0, false, 0))) << "it is a send";
  arrive(segment(MailKind::absence, wants, 0, false, 0));
  EXPECT_FALSE(fits(segment(MailKind::data, wants, 0, true, 10))) << "it has said that none comes";
  room_.end_deserted({3, 1}, 4);
  EXPECT_TRUE(session_->any_deserters()) << "of another trainer";
  room_.end_deserted({3, 0}, 5);
  EXPECT_FALSE(session_->any_deserters());
  room_.work();
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(completion(i).code, GRADCUBE_EPEER);
    EXPECT_EQ(completion(i).notice, 5u);
  }
}

// What it has sent goes out all the same.
TEST_F(MailChannelTest, AnswersForItsTrainerThatHasLeft) {
  submit(shared::Direction::send, 10, 1);
  channel_->add_want({0, 40, {0, 0, 2}, 10}, 1);
  room_.depart(0, 0);
  while (room_.work() != 0) continue;
  channel_->add_want({1, 41, {0, 0, 1}, 10}, 2);
  channel_->add_want({2, 42, {0, 0, 1}, 10}, 3);
  std::map<std::uint32_t, std::uint8_t> answers;
  while (const auto sent = channel_->next_segment(flow())) {
    answers[sent->signature.collective] = sent->signature.kind;
    EXPECT_EQ(sent->bytes, sent->signature.collective == 41 ? 10u : 0u);
    flow().send.record_send(0);
  }
  const auto kind = [](MailKind kind) { return static_cast<std::uint8_t>(kind); };
  EXPECT_EQ(answers, (std::map<std::uint32_t, std::uint8_t>{{40, kind(MailKind::absence)},
                                                            {41, kind(MailKind::data)},
                                                            {42, kind(MailKind::absence)}}));
}

// However much waits for them, and whoever of them is not known to have left yet.
TEST_F(MailChannelTest, EndsWhatWaitsForThoseThatHaveLeftInParts) {
  const std::size_t sent = 2 * std::size_t{Mailroom::kDesertedAtOnce} + 1;
  for (std::uint64_t i = 0; i < sent; ++i) submit(shared::Direction::send, 10, i);
  const std::uint32_t early = receive(10, sent);
  arrive(segment(MailKind::absence, early, 0, false, 0));
  EXPECT_FALSE(session_->any_deserters()) << "nobody can be told why";
  room_.depart(3, 0);
  while (room_.work() != 0) continue;
  EXPECT_EQ(room_.deserters(0), (std::map<MailPeer, std::uint32_t>{}));
  EXPECT_EQ(room_.deserters(1), (std::map<MailPeer, std::uint32_t>{{{3, 0}, 1}}));
  room_.end_deserted({3, 0}, 5);
  EXPECT_EQ(ended(), 0u) << "not at once";
  submit(shared::Direction::send, 10, sent + 1);
  for (unsigned worked = 1; worked != 0; worked = room_.work()) {
    EXPECT_LE(worked, Mailroom::kDesertedAtOnce);
  }
  EXPECT_EQ(ended(), sent + 1) << "the latest one waits for the next notice";
  EXPECT_EQ(room_.deserters(1), (std::map<MailPeer, std::uint32_t>{{{3, 0}, 1}}));
}

// What has waited for one that leaves is told in parts, so that no packet waits; and what it had
// submitted comes before.
TEST_F(MailChannelTest, TellsOfADepartureInParts) {
  const auto number = static_cast<std::uint32_t>(Session::kMaxInFlight);
  for (std::uint32_t i = 0; i < number; ++i) channel_->add_want({i, i, {0, 0, i}, 10}, i + 1);
  const unsigned sent = 2 * Mailroom::kBegunAtOnce;
  for (unsigned i = 0; i < sent; ++i) take(shared::Direction::send, 10, i, 3);
  room_.depart(0, 0);
  EXPECT_EQ(session_->mail().fresh(), sent) << "not at once";
  unsigned calls = 0;
  for (unsigned worked = room_.work(); worked != 0; worked = room_.work(), ++calls) {
    EXPECT_LE(worked, Mailroom::kBegunAtOnce + Mailroom::kSweptAtOnce);
  }
  EXPECT_GE(calls, (number - sent) / Mailroom::kSweptAtOnce);
  unsigned messages = 0;
  unsigned absences = 0;
  for (MailKind kind = next_kind(); kind != MailKind{0}; kind = next_kind()) {
    ++(kind == MailKind::data ? messages : absences);
    flow().send.on_acknowledgement(static_cast<std::uint32_t>(flow().send.next()), 0, 16, 0, 1);
    channel_->on_acknowledged(flow());
  }
  EXPECT_EQ(messages, sent);
  EXPECT_EQ(absences, number - sent);
}

}  // namespace
}  // namespace gradcube::dataplane
